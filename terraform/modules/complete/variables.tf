variable "region" {
  description = "Region of karui, near the site's own server."
  type        = string
  default     = "ap-northeast-1"
}

variable "watchdog_region" {
  description = "Region of the watchdog, another one."
  type        = string
  default     = "us-west-2"
}

variable "site" {
  description = "The site: its id in both configurations, its public host name and certificate (in us-east-1), its own server, a small path that the server answers, and an image of at least a few KB."
  type = object({
    id              = string
    hostname        = string
    certificate_arn = string
    origin          = string
    alive_path      = optional(string, "/favicon.ico")
    image_path      = string
  })
}

variable "karui" {
  description = "karui: its host name, certificate (in `region`) and Route 53 zone, its network, and its container image."
  type = object({
    hostname        = string
    certificate_arn = string
    zone_id         = string
    vpc_id          = string
    subnet_ids      = list(string)
    image           = string
  })
}

variable "watchdog" {
  description = "The watchdog: its network and container image in `watchdog_region`, and an Elastic IP that was made there before (aws ec2 allocate-address)."
  type = object({
    vpc_id                   = string
    subnet_id                = string
    image                    = string
    elastic_ip               = string
    elastic_ip_allocation_id = string
  })
}

variable "mail" {
  description = "Mail of the watchdog: sender, receivers, and the SES identity (ARN, in `watchdog_region`) that may send."
  type = object({
    from             = string
    to               = list(string)
    ses_identity_arn = string
  })
}

variable "edge_secret" {
  description = "What CloudFront sends as X-Karui-Key, such as from: openssl rand -hex 32"
  type        = string
  sensitive   = true
}

variable "external_id" {
  description = "External id of the watchdog's role, such as from: openssl rand -hex 16"
  type        = string
}

variable "purge_external_id" {
  description = "External id of the role for purges, another one."
  type        = string
}

variable "alarm_topic_arns" {
  description = "SNS topics in `region` for karui's alarms."
  type        = list(string)
  default     = []
}

variable "heartbeat_url" {
  description = "Address that the watchdog requests after every round, of a service that raises the alarm when it no longer does."
  type        = string
  default     = ""
}
