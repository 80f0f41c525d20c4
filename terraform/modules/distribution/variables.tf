variable "name" {
  description = "Prefix of the names of the cache policy and the function, which are unique in an account."
  type        = string
  default     = "karui"

  validation {
    condition     = can(regex("^[A-Za-z0-9_-]{1,40}$", var.name))
    error_message = "name takes 1 to 40 letters, digits, hyphens and underscores."
  }
}

variable "create_distribution" {
  description = "False for people who have a distribution: only the cache policy and the function are made, and the output `pieces` says what goes where."
  type        = bool
  default     = true
}

variable "karui" {
  description = <<-EOT
    karui as an origin. `domain_name` is the host name in its certificate; `key` is one of karui's `edge.secrets`, sent as X-Karui-Key;
    `routing` is the site's `id`, sent as X-Routing, where one karui serves several sites.
    `response_timeout` (seconds) has to exceed `deadline`, which is `origin.deadline` of karui.yaml.
    Required where the distribution is made here.
  EOT
  type = object({
    domain_name      = string
    key              = string
    routing          = optional(string)
    origin_id        = optional(string, "karui")
    https_port       = optional(number, 443)
    deadline         = optional(number, 8)
    response_timeout = optional(number, 10)
  })
  default   = null
  sensitive = true

  validation {
    condition     = var.karui == null || try(length(var.karui.key) > 0, false)
    error_message = "karui.key is empty: without a secret anybody could use karui through a distribution of their own."
  }

  validation {
    condition     = var.karui == null || try(var.karui.response_timeout > var.karui.deadline && var.karui.response_timeout <= 120, false)
    error_message = "karui.response_timeout has to exceed karui.deadline (origin.deadline of karui.yaml), else the edge gives up first, and may be at most 120 seconds."
  }
}

variable "origin" {
  description = <<-EOT
    The site's own server, which takes over when karui fails. For a private bucket give its regional domain name and `origin_access_control_id`.
    Required where the distribution is made here.
  EOT
  type = object({
    domain_name              = string
    origin_id                = optional(string, "origin")
    protocol_policy          = optional(string, "https-only")
    headers                  = optional(map(string), {})
    origin_access_control_id = optional(string)
    response_timeout         = optional(number, 30)
  })
  default = null
}

variable "origin_group_id" {
  description = "Id of the origin group, `origin_group_id` of watchdog.yaml."
  type        = string
  default     = "images"
}

variable "path_patterns" {
  description = "Paths that go to karui, in order. CloudFront compares them with regard to case."
  type        = list(string)
  default     = ["*.jpg", "*.jpeg", "*.png", "*.gif", "*.JPG", "*.JPEG", "*.PNG", "*.GIF"]

  validation {
    condition     = length(var.path_patterns) > 0 && !contains(var.path_patterns, "*")
    error_message = "path_patterns needs at least one pattern, and \"*\" would send more than images to karui."
  }
}

variable "query" {
  description = "The query parameters in the cache key, as the site's `query` in karui.yaml: \"all\", \"none\", or a list of names."
  type        = any
  default     = "all"

  validation {
    condition     = contains(["all", "none"], try(tostring(var.query), "")) || (!can(tostring(var.query)) && can([for n in var.query : tostring(n)]) && !can(keys(var.query)))
    error_message = "query is \"all\", \"none\" or a list of names."
  }
}

variable "keyed_headers" {
  description = "Headers in the cache key besides Accept, for instance Origin where the site answers with `Vary: Origin`."
  type        = list(string)
  default     = []

  validation {
    condition     = length(var.keyed_headers) <= 9
    error_message = "A cache policy takes ten headers, Accept included."
  }
}

variable "default_ttl" {
  description = "Seconds that an answer without a lifetime is kept, at most 3600. How long originals linger after a failover depends on it."
  type        = number
  default     = 3600

  validation {
    condition     = var.default_ttl >= 0 && var.default_ttl <= 3600
    error_message = "default_ttl is 0 to 3600 seconds: originals that came by failover linger for as long."
  }
}

variable "max_ttl" {
  description = "Seconds that any answer is kept, at most 86400."
  type        = number
  default     = 86400

  validation {
    condition     = var.max_ttl >= 0 && var.max_ttl <= 86400
    error_message = "max_ttl is 0 to 86400 seconds: originals that came by failover linger for up to as long."
  }
}

variable "aliases" {
  description = "Host names of the site. They need `certificate_arn`."
  type        = list(string)
  default     = []
}

variable "certificate_arn" {
  description = "ACM certificate in us-east-1 for the aliases; CloudFront's own certificate without it."
  type        = string
  default     = null
}

variable "default_cache_policy_id" {
  description = "Cache policy of everything that is no image. The default is AWS's Managed-CachingDisabled."
  type        = string
  default     = "4135ea2d-6df8-44a3-9df3-4b5a84be39ad"
}

variable "default_origin_request_policy_id" {
  description = "Origin request policy of everything that is no image. The default is AWS's Managed-AllViewer: the viewer's Host is sent to the site."
  type        = string
  default     = "216adef6-5c7f-47e4-b989-5492eafa07d3"
}

variable "image_origin_request_policy_id" {
  description = "Origin request policy of image paths, where the site needs the viewer's Host. It must not send Accept: only the cache policy may."
  type        = string
  default     = null
}

variable "error_responses" {
  description = "The site's own error pages. Those for 500, 502, 503 and 504 keep an error caching TTL of 0."
  type = list(object({
    code          = number
    response_code = optional(number)
    page_path     = optional(string)
    ttl           = optional(number, 10)
  }))
  default = []
}

variable "price_class" {
  description = "PriceClass_All, PriceClass_200 or PriceClass_100."
  type        = string
  default     = "PriceClass_All"
}

variable "comment" {
  description = "Comment of the distribution, up to 128 characters."
  type        = string
  default     = "Images by karui"
}

variable "web_acl_id" {
  description = "ARN of a web ACL."
  type        = string
  default     = null
}

variable "tags" {
  description = "Tags of the distribution."
  type        = map(string)
  default     = {}
}
