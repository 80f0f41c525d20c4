mock_provider "aws" {
  mock_data "aws_region" {
    defaults = { region = "ap-northeast-1" }
  }
  mock_data "aws_partition" {
    defaults = { partition = "aws" }
  }
  mock_data "aws_caller_identity" {
    defaults = { account_id = "111122223333" }
  }
  mock_resource "aws_cloudfront_distribution" {
    defaults = { id = "E2ABCDEFGHIJKL" }
  }
}

mock_provider "aws" {
  alias = "watchdog"
  mock_data "aws_region" {
    defaults = { region = "us-west-2" }
  }
  mock_data "aws_partition" {
    defaults = { partition = "aws" }
  }
  mock_data "aws_caller_identity" {
    defaults = { account_id = "111122223333" }
  }
}

override_resource {
  target = module.proxy.aws_iam_role.this
  values = { arn = "arn:aws:iam::111122223333:role/karui-1" }
}
override_resource {
  target = module.role.aws_iam_role.watchdog
  values = { arn = "arn:aws:iam::111122223333:role/karui-watchdog" }
}
override_resource {
  target = module.role.aws_iam_role.purge
  values = { arn = "arn:aws:iam::111122223333:role/karui-watchdog-purge" }
}

variables {
  site = {
    id              = "shop"
    hostname        = "www.example.com"
    certificate_arn = "arn:aws:acm:us-east-1:111122223333:certificate/1"
    origin          = "origin.example.com"
    image_path      = "/logo.jpg"
  }
  karui = {
    hostname        = "karui.example.com"
    certificate_arn = "arn:aws:acm:ap-northeast-1:111122223333:certificate/2"
    zone_id         = "Z1"
    vpc_id          = "vpc-1"
    subnet_ids      = ["subnet-a", "subnet-b"]
    image           = "registry.example.com/karui:1.0"
  }
  watchdog = {
    vpc_id                   = "vpc-2"
    subnet_id                = "subnet-w"
    image                    = "registry.example.com/karui-watchdog:1.0"
    elastic_ip               = "203.0.113.7"
    elastic_ip_allocation_id = "eipalloc-1"
  }
  mail = {
    from             = "karui@example.com"
    to               = ["ops@example.com"]
    ses_identity_arn = "arn:aws:ses:us-west-2:111122223333:identity/example.com"
  }
  edge_secret       = "a-secret-of-the-edge-1"
  external_id       = "shop-7d1f"
  purge_external_id = "shop-purge-91ac"
}

run "one_story" {
  assert {
    condition = (
      yamldecode(output.watchdog_config).sites[0].distribution_id == "E2ABCDEFGHIJKL" &&
      yamldecode(output.watchdog_config).sites[0].role_arn == "arn:aws:iam::111122223333:role/karui-watchdog" &&
      yamldecode(output.watchdog_config).sites[0].external_id == "shop-7d1f"
    )
    error_message = "the watchdog swaps in this distribution, with this role"
  }
  assert {
    condition     = yamldecode(output.watchdog_config).sites[0].degrade == "manual" && yamldecode(output.watchdog_config).sites[0].restore == "manual"
    error_message = "nothing is automatic before a rehearsal has passed"
  }
  assert {
    condition     = yamldecode(output.watchdog_config).sites[0].ping_url == module.proxy.ping_url
    error_message = "the watchdog probes karui's own host name"
  }
  assert {
    condition     = yamldecode(output.karui_config).sites[0].distribution == { id = "E2ABCDEFGHIJKL", role_arn = "arn:aws:iam::111122223333:role/karui-watchdog-purge", external_id = "shop-purge-91ac" }
    error_message = "karui purges with the role that may invalidate, and with no other"
  }
  assert {
    condition     = yamldecode(output.karui_config).sites[0].query == "all"
    error_message = "karui and the cache policy are of one mind about the query"
  }
}
