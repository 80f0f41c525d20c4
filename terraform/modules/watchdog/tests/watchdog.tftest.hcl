mock_provider "aws" {
  mock_data "aws_region" {
    defaults = { region = "us-west-2" }
  }
  mock_data "aws_partition" {
    defaults = { partition = "aws" }
  }
  mock_data "aws_caller_identity" {
    defaults = { account_id = "444455556666" }
  }
  mock_data "aws_subnet" {
    defaults = { availability_zone = "us-west-2b" }
  }
  mock_resource "aws_ebs_volume" {
    defaults = {
      id  = "vol-0123456789abcdef0"
      arn = "arn:aws:ec2:us-west-2:444455556666:volume/vol-0123456789abcdef0"
    }
  }
}

variables {
  proxy_region     = "ap-northeast-1"
  vpc_id           = "vpc-1"
  subnet_id        = "subnet-1"
  image            = "registry.example.com/karui-watchdog:1.0"
  assume_role_arns = ["arn:aws:iam::111122223333:role/karui-watchdog"]
  config = {
    mail  = { from = "karui@example.com", to = ["ops@example.com"], smtp = { host = "mail.example.com", user = "karui", password = "file:/etc/karui/secrets/smtp-password" } }
    sites = [{ id = "shop", ping_url = "https://karui.example.com/.karui/ping.jpg" }]
  }
}

run "one_machine_and_its_state" {
  assert {
    condition     = aws_autoscaling_group.this.min_size == 1 && aws_autoscaling_group.this.max_size == 1 && aws_autoscaling_group.this.instance_refresh[0].preferences[0].min_healthy_percentage == 0
    error_message = "one watchdog, replaced when it dies, and never two for an update"
  }
  assert {
    condition     = aws_ebs_volume.state.availability_zone == "us-west-2b" && aws_ebs_volume.state.encrypted == true
    error_message = "the volume lies in the subnet's zone"
  }
  assert {
    condition     = strcontains(base64decode(aws_launch_template.this.user_data), "attach-volume --volume-id 'vol-0123456789abcdef0'") && strcontains(base64decode(aws_launch_template.this.user_data), "Elastic_Block_Store_vol0123456789abcdef0")
    error_message = "each machine takes the volume over"
  }
  assert {
    condition     = yamldecode(output.config).state_dir == "/var/lib/karui-watchdog" && yamldecode(output.config).sites[0].id == "shop"
    error_message = "the state is on the volume, and the configuration is the one given"
  }
}

run "rights" {
  assert {
    condition = { for s in jsondecode(aws_iam_role_policy.this.policy).Statement : s.Sid => [s.Action, s.Resource] } == {
      TakeTheCustomersRoles = [["sts:AssumeRole"], ["arn:aws:iam::111122223333:role/karui-watchdog"]]
      AttachTheState        = [["ec2:AttachVolume"], ["arn:aws:ec2:us-west-2:444455556666:volume/vol-0123456789abcdef0"]]
      AttachItHere          = [["ec2:AttachVolume"], ["arn:aws:ec2:us-west-2:444455556666:instance/*"]]
    }
    error_message = "the machine takes the customers' roles and its volume, and nothing else"
  }
  assert {
    condition     = one([for s in jsondecode(aws_iam_role_policy.this.policy).Statement : s.Condition if s.Sid == "AttachItHere"]) == { StringEquals = { "aws:ResourceTag/karui-watchdog" = "karui-watchdog" } }
    error_message = "the volume goes to the watchdog's machines alone"
  }
  assert {
    condition     = one([for t in aws_launch_template.this.tag_specifications : t.tags if t.resource_type == "instance"])["karui-watchdog"] == "karui-watchdog"
    error_message = "the machines bear the tag that the right goes by"
  }
}

run "mail_and_address" {
  variables {
    ses_identity_arns        = ["arn:aws:ses:us-west-2:444455556666:identity/example.com"]
    elastic_ip_allocation_id = "eipalloc-1"
    secrets                  = { smtp-password = "a-password" }
  }
  assert {
    condition     = one([for s in jsondecode(aws_iam_role_policy.this.policy).Statement : [s.Action, s.Resource] if s.Sid == "Mail"]) == [["ses:SendEmail", "ses:SendRawEmail"], ["arn:aws:ses:us-west-2:444455556666:identity/example.com"]]
    error_message = "mail goes out as this identity only"
  }
  assert {
    condition     = strcontains(base64decode(aws_launch_template.this.user_data), "--allocation-id 'eipalloc-1'") && contains(one([for s in jsondecode(aws_iam_role_policy.this.policy).Statement : s.Resource if s.Sid == "TakeTheAddress"]), "arn:aws:ec2:us-west-2:444455556666:elastic-ip/eipalloc-1")
    error_message = "the machine takes its fixed address, and may"
  }
  assert {
    condition     = !strcontains(base64decode(aws_launch_template.this.user_data), "a-password") && aws_ssm_parameter.secret["smtp-password"].type == "SecureString"
    error_message = "no secret stands in the start script"
  }
}

run "metadata" {
  assert {
    condition     = length(aws_vpc_security_group_egress_rule.this) == 2 && aws_launch_template.this.metadata_options[0].http_tokens == "required"
    error_message = "credentials are given out for tokens only, and there is a way out"
  }
}

run "refuses_the_proxys_region" {
  command = plan
  variables {
    proxy_region = "us-west-2"
  }
  expect_failures = [aws_launch_template.this]
}

run "refuses_wildcard_roles" {
  command = plan
  variables {
    assume_role_arns = ["arn:aws:iam::111122223333:role/*"]
  }
  expect_failures = [var.assume_role_arns]
}

run "refuses_neither_image_nor_package" {
  command = plan
  variables {
    image = null
  }
  expect_failures = [aws_launch_template.this]
}
