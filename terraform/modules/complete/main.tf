# One site, everything in one account. Where the distribution belongs to somebody
# else, module.role goes into their configuration, with a provider of their
# account, and module.distribution too.

provider "aws" {
  region = var.region
}

provider "aws" {
  alias  = "watchdog"
  region = var.watchdog_region
}

module "proxy" {
  source = "../proxy"

  vpc_id                      = var.karui.vpc_id
  public_subnet_ids           = var.karui.subnet_ids
  instance_subnet_ids         = var.karui.subnet_ids
  associate_public_ip_address = true
  hostname                    = var.karui.hostname
  certificate_arn             = var.karui.certificate_arn
  zone_id                     = var.karui.zone_id
  image                       = var.karui.image
  watchdog_cidrs              = ["${var.watchdog.elastic_ip}/32"]
  edge_secrets                = [var.edge_secret]
  assume_role_arns            = [module.role.purge_role_arn]
  alarm_topic_arns            = var.alarm_topic_arns

  config = {
    sites = [{
      id      = var.site.id
      hosts   = [var.site.hostname]
      default = true
      # Asked for under its own name, as CloudFront asks it when it fails over.
      origins = [{ name = "main", urls = ["https://${var.site.origin}"] }]
      formats = ["webp"]
      query   = "all"
      distribution = {
        id          = module.distribution.distribution_id
        role_arn    = module.role.purge_role_arn
        external_id = var.purge_external_id
      }
    }]
  }
}

module "distribution" {
  source = "../distribution"

  aliases         = [var.site.hostname]
  certificate_arn = var.site.certificate_arn
  query           = "all" # as the site's query above

  karui = {
    # Not module.proxy.hostname, which would say the same: the machines' start
    # script knows this distribution, and would wait for itself.
    domain_name = var.karui.hostname
    key         = var.edge_secret
    routing     = var.site.id
  }
  origin = {
    domain_name = var.site.origin
  }
}

module "role" {
  source = "../role"

  distribution_ids        = [module.distribution.distribution_id]
  watchdog_principal_arns = [module.watchdog.role_arn]
  external_id             = var.external_id
  allow_invalidation      = true
  purge_principal_arns    = [module.proxy.role_arn]
  purge_external_id       = var.purge_external_id
}

module "watchdog" {
  source    = "../watchdog"
  providers = { aws = aws.watchdog }

  proxy_region             = var.region
  vpc_id                   = var.watchdog.vpc_id
  subnet_id                = var.watchdog.subnet_id
  image                    = var.watchdog.image
  elastic_ip_allocation_id = var.watchdog.elastic_ip_allocation_id
  assume_role_arns         = [module.role.watchdog_role_arn]
  ses_identity_arns        = [var.mail.ses_identity_arn]

  config = {
    heartbeat_url = var.heartbeat_url
    mail = {
      from = var.mail.from
      to   = var.mail.to
      ses  = { region = var.watchdog_region }
    }
    sites = [merge(module.distribution.watchdog_site, {
      id          = var.site.id
      ping_url    = "https://${var.karui.hostname}/.karui/ping.jpg"
      origin_url  = "https://${var.site.origin}${var.site.alive_path}"
      viewer_url  = "https://${var.site.hostname}${var.site.image_path}"
      role_arn    = module.role.watchdog_role_arn
      external_id = var.external_id
      # Say auto when a rehearsal has passed.
      degrade          = "manual"
      restore          = "manual"
      after_restore    = "invalidate"
      invalidate_paths = ["/*"]
    })]
  }
}
