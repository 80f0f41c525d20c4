data "aws_partition" "current" {}
data "aws_region" "current" {}
data "aws_caller_identity" "current" {}

data "aws_ami" "debian" {
  count = var.ami_id == null ? 1 : 0

  most_recent = true
  owners      = ["136693071363"] # Debian

  filter {
    name   = "name"
    values = ["debian-12-${var.architecture}-*"]
  }
}

locals {
  port = 8080

  secrets = merge(var.secrets, { for i, s in var.edge_secrets : "edge-${i}" => s })
  # The names are no secret, and resources are counted by them.
  secret_names = nonsensitive(keys(local.secrets))

  config = merge(var.config, {
    listen = ":${local.port}"
    drain  = "${var.drain}s"
    edge = merge(try(var.config.edge, {}), {
      secrets = [for n in local.secret_names : "file:/etc/karui/secrets/${n}" if startswith(n, "edge-")]
    })
    cache = merge(try(var.config.cache, {}), {
      # Below disk.high (90 % of the file system), so that the size rules.
      volumes = [{ path = "/var/cache/karui", max_size = "${floor(var.cache_volume.size * 0.85)}GiB" }]
    })
  })

  user_data = templatefile("${path.module}/user-data.sh.tftpl", {
    config     = base64encode(yamlencode(local.config))
    drain      = var.drain
    group      = var.name
    port       = local.port
    image      = var.image == null ? "" : var.image
    package    = var.package == null ? { url = "", sha256 = "" } : var.package
    parameters = { for n in local.secret_names : n => aws_ssm_parameter.secret[n].name }
  })
}

resource "aws_ssm_parameter" "secret" {
  for_each = toset(local.secret_names)

  name  = "/${var.name}/${each.key}"
  type  = "SecureString"
  value = local.secrets[each.key]
  tags  = var.tags
}

resource "aws_launch_template" "this" {
  name_prefix            = "${var.name}-"
  image_id               = var.ami_id == null ? data.aws_ami.debian[0].id : var.ami_id
  instance_type          = var.instance_type
  update_default_version = true
  user_data              = base64encode(local.user_data)
  tags                   = var.tags

  iam_instance_profile {
    name = aws_iam_instance_profile.this.name
  }

  metadata_options {
    http_endpoint               = "enabled"
    http_tokens                 = "required"
    http_put_response_hop_limit = 1
  }

  network_interfaces {
    associate_public_ip_address = var.associate_public_ip_address
    security_groups             = [aws_security_group.instance.id]
    delete_on_termination       = true
  }

  block_device_mappings {
    device_name = "/dev/sdf"
    ebs {
      volume_size           = var.cache_volume.size
      volume_type           = var.cache_volume.type
      iops                  = contains(["gp3", "io1", "io2"], var.cache_volume.type) ? var.cache_volume.iops : null
      throughput            = var.cache_volume.type == "gp3" ? var.cache_volume.throughput : null
      encrypted             = true
      delete_on_termination = true
    }
  }

  tag_specifications {
    resource_type = "instance"
    tags          = merge(var.tags, { Name = var.name })
  }
  tag_specifications {
    resource_type = "volume"
    tags          = merge(var.tags, { Name = "${var.name}-cache" })
  }

  lifecycle {
    precondition {
      condition     = (var.image == null) != (var.package == null)
      error_message = "Give either image or package."
    }
    precondition {
      condition     = length(local.user_data) <= 16384
      error_message = "The start script with karui.yaml exceeds the 16 KiB that a machine takes: shorten config."
    }
  }
}

resource "aws_autoscaling_group" "this" {
  name                = var.name
  min_size            = var.min_size
  max_size            = var.max_size
  vpc_zone_identifier = var.instance_subnet_ids
  target_group_arns   = [aws_lb_target_group.this.arn]

  # Not "ELB": the load balancer asks for the ping, which fails under stress too.
  # To replace machines with warm caches by cold ones is what a peak needs least.
  health_check_type         = "EC2"
  health_check_grace_period = 300
  default_instance_warmup   = 180
  enabled_metrics           = ["GroupInServiceInstances"]
  wait_for_capacity_timeout = "30m"

  launch_template {
    id      = aws_launch_template.this.id
    version = aws_launch_template.this.latest_version
  }

  # A machine is in service once it has answered a ping to itself, and goes
  # again if it does not: a version that does not start replaces no other.
  initial_lifecycle_hook {
    name                 = "ready"
    lifecycle_transition = "autoscaling:EC2_INSTANCE_LAUNCHING"
    heartbeat_timeout    = 1200
    default_result       = "ABANDON"
  }

  # A new one is in service before an old one goes.
  instance_refresh {
    strategy = "Rolling"
    preferences {
      min_healthy_percentage = 100
      max_healthy_percentage = 150
      auto_rollback          = true
    }
  }

  dynamic "tag" {
    for_each = var.tags
    content {
      key                 = tag.key
      value               = tag.value
      propagate_at_launch = false
    }
  }
}

resource "aws_autoscaling_policy" "cpu" {
  name                   = "${var.name}-cpu"
  autoscaling_group_name = aws_autoscaling_group.this.name
  policy_type            = "TargetTrackingScaling"

  target_tracking_configuration {
    target_value = var.cpu_target
    predefined_metric_specification {
      predefined_metric_type = "ASGAverageCPUUtilization"
    }
  }
}
