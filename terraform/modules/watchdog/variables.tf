variable "name" {
  description = "Name of everything that is made here."
  type        = string
  default     = "karui-watchdog"
}

variable "proxy_region" {
  description = "The region of karui. The watchdog is refused in the same one, unless this is null: where it stands elsewhere than at AWS."
  type        = string
}

variable "vpc_id" {
  description = "The network that the watchdog stands in."
  type        = string
}

variable "subnet_id" {
  description = "One subnet: the volume of the state lies in its zone."
  type        = string
}

variable "associate_public_ip_address" {
  description = "False where the subnet has a NAT gateway. Its address is then the watchdog's."
  type        = bool
  default     = true
}

variable "elastic_ip_allocation_id" {
  description = "Elastic IP that each machine takes, so that the address admitted to karui stays. Not needed behind a NAT gateway."
  type        = string
  default     = null
}

variable "config" {
  description = "watchdog.yaml as an object: `mail` and `sites`, and what differs from the defaults. The module itself sets state_dir."
  type        = any

  validation {
    condition     = try(length(var.config.sites) > 0, false)
    error_message = "config needs sites."
  }
}

variable "secrets" {
  description = "Secrets by name, such as smtp-password. The configuration says file:/etc/karui/secrets/NAME where it needs one."
  type        = map(string)
  default     = {}
  sensitive   = true

  validation {
    condition     = alltrue([for n in keys(var.secrets) : can(regex("^[a-z0-9_-][a-z0-9_.-]*$", n))])
    error_message = "Names of secrets take a-z, 0-9, hyphen, dot and underscore, and do not begin with a dot."
  }
}

variable "assume_role_arns" {
  description = "The roles in the customers' accounts, `role_arn` of the sites."
  type        = list(string)

  validation {
    condition     = length(var.assume_role_arns) > 0 && alltrue([for a in var.assume_role_arns : can(regex("^arn:[a-z-]+:iam::[0-9]{12}:role/[^*]+$", a))])
    error_message = "assume_role_arns needs ARNs of roles, without wildcards."
  }
}

variable "ses_identity_arns" {
  description = "SES identities that mail may be sent as, where config.mail.ses is used. With SMTP, none."
  type        = list(string)
  default     = []
}

variable "image" {
  description = "Container image of karui-watchdog, with a tag or digest. Either this or `package`."
  type        = string
  default     = null
}

variable "package" {
  description = "Debian package of karui-watchdog: an https:// or s3:// address, and its SHA-256. Either this or `image`."
  type = object({
    url    = string
    sha256 = string
  })
  default = null

  validation {
    condition     = var.package == null || try(can(regex("^(https|s3)://", var.package.url)) && can(regex("^[0-9a-f]{64}$", var.package.sha256)), false)
    error_message = "package needs an https:// or s3:// address and a SHA-256 in 64 lower-case hex digits."
  }
}

variable "architecture" {
  description = "amd64 or arm64, of the machine and of the image or package."
  type        = string
  default     = "amd64"

  validation {
    condition     = contains(["amd64", "arm64"], var.architecture)
    error_message = "architecture is amd64 or arm64."
  }
}

variable "instance_type" {
  description = "Machine type. The smallest will do."
  type        = string
  default     = "t3.micro"
}

variable "ami_id" {
  description = "Debian 12 image for the machine; without it the newest official one."
  type        = string
  default     = null
}

variable "policy_arns" {
  description = "Further policies for the machine: to pull images, to be reached by Session Manager."
  type        = list(string)
  default     = []
}

variable "alarm_topic_arns" {
  description = "SNS topics, in this region, that learn when there is no watchdog. Set `heartbeat_url` as well: it notices a watchdog that does not work."
  type        = list(string)
  default     = []
}

variable "tags" {
  description = "Tags of everything that is made here."
  type        = map(string)
  default     = {}
}
