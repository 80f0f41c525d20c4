mock_provider "aws" {
  mock_data "aws_ec2_managed_prefix_list" {
    defaults = { id = "pl-58a04531" }
  }
  mock_data "aws_ami" {
    defaults = { id = "ami-0debian" }
  }
  mock_data "aws_region" {
    defaults = { region = "ap-northeast-1" }
  }
  mock_data "aws_partition" {
    defaults = { partition = "aws" }
  }
  mock_data "aws_caller_identity" {
    defaults = { account_id = "111122223333" }
  }
}

variables {
  vpc_id              = "vpc-1"
  public_subnet_ids   = ["subnet-a", "subnet-b"]
  instance_subnet_ids = ["subnet-c", "subnet-d"]
  certificate_arn     = "arn:aws:acm:ap-northeast-1:111122223333:certificate/1"
  hostname            = "karui.example.com"
  watchdog_cidrs      = ["203.0.113.7/32"]
  edge_secrets        = ["a-secret-of-the-edge-1"]
  image               = "registry.example.com/karui:1.0"
  config = {
    edge = { debug_headers = false }
    sites = [{
      id      = "shop"
      default = true
      origins = [{ name = "tokyo", urls = ["https://origin.example.com"] }]
    }]
  }
}

run "who_may_come_in" {
  assert {
    condition = (
      aws_vpc_security_group_ingress_rule.cloudfront.prefix_list_id == "pl-58a04531" &&
      aws_vpc_security_group_ingress_rule.cloudfront.from_port == 443 && aws_vpc_security_group_ingress_rule.cloudfront.to_port == 443 &&
      aws_vpc_security_group_ingress_rule.cloudfront.cidr_ipv4 == null
    )
    error_message = "CloudFront comes in by its prefix list, on 443 alone"
  }
  assert {
    condition     = [for r in aws_vpc_security_group_ingress_rule.watchdog : [r.cidr_ipv4, r.from_port, r.to_port]] == [["203.0.113.7/32", 443, 443]]
    error_message = "the watchdog's address is admitted on its own"
  }
  assert {
    condition     = aws_vpc_security_group_ingress_rule.watchdog["203.0.113.7/32"].security_group_id == aws_security_group.watchdog.id && contains(aws_lb.this.security_groups, aws_security_group.watchdog.id) && contains(aws_lb.this.security_groups, aws_security_group.edge.id)
    error_message = "both groups are the load balancer's"
  }
  assert {
    condition     = aws_vpc_security_group_ingress_rule.instance.referenced_security_group_id == aws_security_group.edge.id && aws_vpc_security_group_ingress_rule.instance.cidr_ipv4 == null
    error_message = "the machines are reached through the load balancer alone"
  }
}

run "load_balancer" {
  assert {
    condition     = aws_lb_listener.https.protocol == "HTTPS" && aws_lb_listener.https.port == 443 && aws_lb_listener.https.certificate_arn == var.certificate_arn
    error_message = "CloudFront speaks HTTPS to the load balancer"
  }
  assert {
    condition     = aws_lb.this.idle_timeout > 60 && aws_lb.this.idle_timeout < 75
    error_message = "kept connections nest: CloudFront 60 s, the load balancer, karui 75 s"
  }
  assert {
    condition     = aws_lb_target_group.this.health_check[0].path == "/.karui/ping.jpg" && aws_lb_target_group.this.health_check[0].matcher == "200"
    error_message = "health is a picture that went through a conversion"
  }
  assert {
    condition     = aws_autoscaling_group.this.health_check_type == "EC2"
    error_message = "a karui under stress must not be replaced by a cold one"
  }
  assert {
    condition     = length(aws_route53_record.this) == 0
    error_message = "no record without a zone"
  }
}

run "drain" {
  variables {
    drain = 90
  }
  assert {
    condition     = tonumber(aws_lb_target_group.this.deregistration_delay) >= 90
    error_message = "the load balancer waits for at least as long as karui drains"
  }
  assert {
    condition     = yamldecode(output.config).drain == "90s"
    error_message = "karui drains for as long as it is said here"
  }
  assert {
    condition     = strcontains(base64decode(aws_launch_template.this.user_data), "--stop-timeout 100") && strcontains(base64decode(aws_launch_template.this.user_data), "TimeoutStopSec=110")
    error_message = "neither docker nor systemd kills karui before it has drained"
  }
  assert {
    condition     = aws_autoscaling_group.this.instance_refresh[0].preferences[0].min_healthy_percentage == 100
    error_message = "a new machine is in service before an old one goes"
  }
}

run "in_service" {
  assert {
    condition     = one(aws_autoscaling_group.this.initial_lifecycle_hook).lifecycle_transition == "autoscaling:EC2_INSTANCE_LAUNCHING" && one(aws_autoscaling_group.this.initial_lifecycle_hook).default_result == "ABANDON"
    error_message = "a machine that never answers goes again"
  }
  assert {
    condition     = strcontains(base64decode(aws_launch_template.this.user_data), "--lifecycle-hook-name ${one(aws_autoscaling_group.this.initial_lifecycle_hook).name} --auto-scaling-group-name '${aws_autoscaling_group.this.name}'")
    error_message = "the machine says to its own group that it is ready"
  }
  assert {
    condition     = jsondecode(aws_iam_role_policy.this.policy).Statement[1].Resource == ["arn:aws:autoscaling:ap-northeast-1:111122223333:autoScalingGroup:*:autoScalingGroupName/karui"]
    error_message = "and may say so to this group alone"
  }
}

run "descriptions" {
  # AWS refuses others, apostrophes among them.
  assert {
    condition = alltrue([for d in concat(
      [aws_security_group.edge.description, aws_security_group.watchdog.description, aws_security_group.instance.description,
      aws_vpc_security_group_ingress_rule.cloudfront.description, aws_vpc_security_group_ingress_rule.instance.description, aws_vpc_security_group_egress_rule.edge.description],
      [for r in aws_vpc_security_group_ingress_rule.watchdog : r.description], [for r in aws_vpc_security_group_egress_rule.instance : r.description],
    ) : can(regex("^[A-Za-z0-9 ._:/()#,@\\[\\]+=&;{}!$*-]{1,255}$", d))])
    error_message = "descriptions of security groups take only some characters"
  }
}

run "configuration" {
  assert {
    condition     = yamldecode(output.config).sites[0].id == "shop" && yamldecode(output.config).edge.debug_headers == false
    error_message = "the sites and settings given are kept"
  }
  assert {
    condition     = yamldecode(output.config).edge.secrets == ["file:/etc/karui/secrets/edge-0"]
    error_message = "the key is asked of every request"
  }
  assert {
    condition     = yamldecode(output.config).cache.volumes == [{ path = "/var/cache/karui", max_size = "42GiB" }]
    error_message = "the cache lies on its volume, and leaves room on it"
  }
  assert {
    condition     = strcontains(base64decode(aws_launch_template.this.user_data), base64encode(output.config))
    error_message = "the machines get this configuration"
  }
  assert {
    condition     = one(aws_launch_template.this.block_device_mappings).ebs[0].volume_size == 50 && one(aws_launch_template.this.block_device_mappings).ebs[0].encrypted == "true"
    error_message = "each machine has an encrypted volume for its cache"
  }
}

run "secrets" {
  variables {
    edge_secrets = ["a-secret-of-the-edge-2", "a-secret-of-the-edge-1"]
    secrets      = { "admin-token" = "a-token-of-the-staff" }
  }
  assert {
    condition     = !strcontains(base64decode(aws_launch_template.this.user_data), "a-secret-of") && !strcontains(base64decode(aws_launch_template.this.user_data), "a-token-of")
    error_message = "no secret stands in the start script, which everybody on the machine can read"
  }
  assert {
    condition     = alltrue([for p in aws_ssm_parameter.secret : p.type == "SecureString"]) && toset(keys(aws_ssm_parameter.secret)) == toset(["edge-0", "edge-1", "admin-token"])
    error_message = "secrets are encrypted parameters"
  }
  assert {
    condition     = aws_ssm_parameter.secret["edge-0"].value == "a-secret-of-the-edge-2"
    error_message = "the values are where their names say"
  }
  assert {
    condition     = yamldecode(output.config).edge.secrets == ["file:/etc/karui/secrets/edge-0", "file:/etc/karui/secrets/edge-1"]
    error_message = "two secrets are good at once while one replaces the other"
  }
  assert {
    condition     = flatten([for s in jsondecode(aws_iam_role_policy.this.policy).Statement : s.Action]) == ["ssm:GetParameter", "autoscaling:CompleteLifecycleAction"]
    error_message = "reading secrets and saying that they are ready is all that the machines may do"
  }
  assert {
    condition     = toset(jsondecode(aws_iam_role_policy.this.policy).Statement[0].Resource) == toset([for p in aws_ssm_parameter.secret : p.arn]) && [for s in jsondecode(aws_iam_role_policy.this.policy).Statement : s.Sid] == ["Secrets", "SayThatItIsReady"]
    error_message = "the machines read these parameters and no others"
  }
}

run "package" {
  variables {
    image = null
    package = {
      url    = "s3://packages/karui_1.0_amd64.deb"
      sha256 = "0000000000000000000000000000000000000000000000000000000000000000"
    }
    assume_role_arns = ["arn:aws:iam::111122223333:role/karui-watchdog-purge"]
    zone_id          = "Z1"
  }
  assert {
    condition     = strcontains(base64decode(aws_launch_template.this.user_data), "sha256sum --check") && !strcontains(base64decode(aws_launch_template.this.user_data), "docker")
    error_message = "a package is checked before it is installed"
  }
  assert {
    condition     = jsondecode(aws_iam_role_policy.this.policy).Statement[2].Resource == ["arn:aws:iam::111122223333:role/karui-watchdog-purge"]
    error_message = "karui may take the role for purges"
  }
  assert {
    condition     = aws_route53_record.this[0].name == "karui.example.com"
    error_message = "with a zone, the host name gets its record"
  }
}

run "alarms" {
  variables {
    alarm_topic_arns = ["arn:aws:sns:ap-northeast-1:111122223333:ops"]
  }
  assert {
    condition = alltrue([for a in [
      aws_cloudwatch_metric_alarm.none_healthy, aws_cloudwatch_metric_alarm.unhealthy, aws_cloudwatch_metric_alarm.turned_away, aws_cloudwatch_metric_alarm.slow
    ] : a.alarm_actions == toset(var.alarm_topic_arns) && a.ok_actions == toset(var.alarm_topic_arns)])
    error_message = "somebody learns of every alarm and of its end"
  }
  assert {
    condition     = aws_cloudwatch_metric_alarm.none_healthy.treat_missing_data == "breaching"
    error_message = "no data about healthy machines is no good sign"
  }
}

run "refuses_image_and_package" {
  command = plan
  variables {
    package = {
      url    = "https://packages.example.com/karui.deb"
      sha256 = "0000000000000000000000000000000000000000000000000000000000000000"
    }
  }
  expect_failures = [aws_launch_template.this]
}

run "refuses_short_secrets" {
  command = plan
  variables {
    edge_secrets = ["short"]
  }
  expect_failures = [var.edge_secrets]
}

run "refuses_the_world_as_watchdog" {
  command = plan
  variables {
    watchdog_cidrs = ["0.0.0.0/0"]
  }
  expect_failures = [var.watchdog_cidrs]
}

run "refuses_no_sites" {
  command = plan
  variables {
    config = {}
  }
  expect_failures = [var.config]
}
