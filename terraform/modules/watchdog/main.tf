data "aws_region" "current" {}
data "aws_partition" "current" {}
data "aws_caller_identity" "current" {}

data "aws_subnet" "this" {
  id = var.subnet_id
}

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
  config       = merge(var.config, { state_dir = "/var/lib/karui-watchdog" })
  secret_names = nonsensitive(keys(var.secrets))

  user_data = templatefile("${path.module}/user-data.sh.tftpl", {
    config     = base64encode(yamlencode(local.config))
    volume     = aws_ebs_volume.state.id
    address    = var.elastic_ip_allocation_id == null ? "" : var.elastic_ip_allocation_id
    image      = var.image == null ? "" : var.image
    package    = var.package == null ? { url = "", sha256 = "" } : var.package
    parameters = { for n in local.secret_names : n => aws_ssm_parameter.secret[n].name }
  })
}

# What was told to whom, mails still to be sent, and the lock. A volume of its
# own, which outlives the machine and is in use by one machine at a time.
resource "aws_ebs_volume" "state" {
  availability_zone = data.aws_subnet.this.availability_zone
  size              = 1
  type              = "gp3"
  encrypted         = true
  tags              = merge(var.tags, { Name = "${var.name}-state" })
}

resource "aws_ssm_parameter" "secret" {
  for_each = toset(local.secret_names)

  name  = "/${var.name}/${each.key}"
  type  = "SecureString"
  value = var.secrets[each.key]
  tags  = var.tags
}

resource "aws_security_group" "this" {
  name_prefix = "${var.name}-"
  description = "karui-watchdog: nothing comes in"
  vpc_id      = var.vpc_id
  tags        = var.tags

  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_vpc_security_group_egress_rule" "this" {
  for_each = toset(["0.0.0.0/0", "::/0"])

  security_group_id = aws_security_group.this.id
  description       = "karui, the sites, AWS, mail, packages"
  ip_protocol       = "-1"
  cidr_ipv4         = strcontains(each.value, ":") ? null : each.value
  cidr_ipv6         = strcontains(each.value, ":") ? each.value : null
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
    security_groups             = [aws_security_group.this.id]
    delete_on_termination       = true
  }

  # The right to attach the volume goes by this tag.
  tag_specifications {
    resource_type = "instance"
    tags          = merge(var.tags, { Name = var.name, karui-watchdog = var.name })
  }

  lifecycle {
    precondition {
      condition     = var.proxy_region == null || data.aws_region.current.region != var.proxy_region
      error_message = "The watchdog stands in karui's own region, and would go down with it: give this module a provider of another region."
    }
    precondition {
      condition     = (var.image == null) != (var.package == null)
      error_message = "Give either image or package."
    }
    precondition {
      condition     = length(local.user_data) <= 16384
      error_message = "The start script with watchdog.yaml exceeds the 16 KiB that a machine takes: shorten config."
    }
  }
}

# A group of one, so that a machine that dies is replaced.
resource "aws_autoscaling_group" "this" {
  name_prefix               = "${var.name}-"
  min_size                  = 1
  max_size                  = 1
  vpc_zone_identifier       = [var.subnet_id]
  health_check_type         = "EC2"
  enabled_metrics           = ["GroupInServiceInstances"]
  wait_for_capacity_timeout = "15m"

  launch_template {
    id      = aws_launch_template.this.id
    version = aws_launch_template.this.latest_version
  }

  # The old one goes first: the volume can be with one machine only.
  instance_refresh {
    strategy = "Rolling"
    preferences {
      min_healthy_percentage = 0
      max_healthy_percentage = 100
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

resource "aws_cloudwatch_metric_alarm" "gone" {
  alarm_name          = "${var.name}-gone"
  alarm_description   = "There has been no machine for the watchdog for 15 minutes: nobody swaps when karui fails. CloudFront still fails over by itself."
  namespace           = "AWS/AutoScaling"
  metric_name         = "GroupInServiceInstances"
  dimensions          = { AutoScalingGroupName = aws_autoscaling_group.this.name }
  statistic           = "Minimum"
  period              = 300
  evaluation_periods  = 3
  comparison_operator = "LessThanThreshold"
  threshold           = 1
  treat_missing_data  = "breaching"
  alarm_actions       = var.alarm_topic_arns
  ok_actions          = var.alarm_topic_arns
  tags                = var.tags
}
