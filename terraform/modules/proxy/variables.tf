variable "name" {
  description = "Name of everything that is made here."
  type        = string
  default     = "karui"

  validation {
    condition     = can(regex("^[A-Za-z0-9-]{1,24}$", var.name))
    error_message = "name takes 1 to 24 letters, digits and hyphens: load balancers allow 32 with what is added."
  }
}

variable "vpc_id" {
  description = "The network that karui stands in."
  type        = string
}

variable "public_subnet_ids" {
  description = "Subnets of the load balancer, in at least two zones."
  type        = list(string)

  validation {
    condition     = length(var.public_subnet_ids) >= 2
    error_message = "A load balancer needs subnets in at least two zones."
  }
}

variable "instance_subnet_ids" {
  description = "Subnets of the machines, with a way out to the site's own server. The same ones as the load balancer's will do."
  type        = list(string)
}

variable "associate_public_ip_address" {
  description = "Set it where the machines' subnets have no NAT gateway: nothing but the load balancer can reach them all the same."
  type        = bool
  default     = false
}

variable "certificate_arn" {
  description = "ACM certificate, in this region, for karui's own host name."
  type        = string
}

variable "hostname" {
  description = "karui's own host name, such as karui.example.com. With zone_id, a record is made for it."
  type        = string
}

variable "zone_id" {
  description = "Route 53 zone of the host name."
  type        = string
  default     = null
}

variable "watchdog_cidrs" {
  description = "Addresses of karui-watchdog, such as 203.0.113.7/32. They are not in CloudFront's prefix list."
  type        = list(string)

  validation {
    condition     = alltrue([for c in var.watchdog_cidrs : can(cidrhost(c, 0)) && c != "0.0.0.0/0"])
    error_message = "watchdog_cidrs takes networks such as 203.0.113.7/32, and not the whole world."
  }
}

variable "edge_secrets" {
  description = "`edge.secrets`: accepted values of X-Karui-Key, the current one first. Two at once while one replaces the other."
  type        = list(string)
  sensitive   = true

  validation {
    condition     = length(var.edge_secrets) >= 1 && length(var.edge_secrets) <= 2 && alltrue([for s in var.edge_secrets : length(s) >= 16])
    error_message = "edge_secrets takes one or two values of at least 16 characters."
  }
}

variable "secrets" {
  description = "Further secrets by name. The configuration says file:/etc/karui/secrets/NAME where it needs one."
  type        = map(string)
  default     = {}
  sensitive   = true

  validation {
    condition     = alltrue([for n in keys(var.secrets) : can(regex("^[a-z0-9_.-]+$", n)) && !can(regex("^(edge-|[.])", n))])
    error_message = "Names of secrets take a-z, 0-9, hyphen, dot and underscore, and do not begin with edge- or a dot."
  }
}

variable "config" {
  description = "karui.yaml as an object, above all `sites`. The module itself sets listen, drain, edge.secrets and cache.volumes."
  type        = any

  validation {
    condition     = try(length(var.config.sites) > 0, false)
    error_message = "config needs sites."
  }
}

variable "drain" {
  description = "`drain` in seconds: what answers under way have to finish when a machine goes."
  type        = number
  default     = 30

  validation {
    condition     = var.drain >= 1 && var.drain <= 300
    error_message = "drain is 1 to 300 seconds."
  }
}

variable "image" {
  description = "Container image of karui, with a tag or digest. Either this or `package`."
  type        = string
  default     = null
}

variable "package" {
  description = "Debian package of karui: an https:// or s3:// address, and its SHA-256. Either this or `image`."
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
  description = "amd64 or arm64, of the machines and of the image or package."
  type        = string
  default     = "amd64"

  validation {
    condition     = contains(["amd64", "arm64"], var.architecture)
    error_message = "architecture is amd64 or arm64."
  }
}

variable "instance_type" {
  description = "Machine type. Conversions take CPU; each worker may take 1 GiB of memory."
  type        = string
  default     = "c7i.xlarge"
}

variable "ami_id" {
  description = "Debian 12 image for the machines. Without it the newest official one; each newer one then replaces the machines at the next apply, and their caches with them."
  type        = string
  default     = null
}

variable "min_size" {
  description = "Machines at least. Two, so that one may go."
  type        = number
  default     = 2
}

variable "max_size" {
  description = "Machines at most."
  type        = number
  default     = 4
}

variable "cpu_target" {
  description = "Mean CPU use in percent that the number of machines is kept at."
  type        = number
  default     = 60
}

variable "cache_volume" {
  description = "The volume that holds the cache, one for each machine: size in GiB, type, IOPS and MiB/s. It goes with its machine."
  type = object({
    size       = optional(number, 50)
    type       = optional(string, "gp3")
    iops       = optional(number, 3000)
    throughput = optional(number, 250)
  })
  default = {}

  validation {
    condition     = var.cache_volume.size >= 10
    error_message = "cache_volume.size is at least 10 GiB."
  }
}

variable "policy_arns" {
  description = "Further policies for the machines: to read a private bucket as an origin, to pull images, to be reached by Session Manager."
  type        = list(string)
  default     = []
}

variable "assume_role_arns" {
  description = "Roles that karui may take: for purges (`distribution.role_arn`), or of an origin's bucket."
  type        = list(string)
  default     = []
}

variable "alarm_topic_arns" {
  description = "SNS topics that learn of alarms and of their end."
  type        = list(string)
  default     = []
}

variable "tags" {
  description = "Tags of everything that is made here."
  type        = map(string)
  default     = {}
}
