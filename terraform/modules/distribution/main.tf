locals {
  # 403 is how a bucket says that there is no such object, and how a server's
  # firewall turns a proxy away; the rest is karui in trouble, or its machine.
  failover_codes = [403, 500, 502, 503, 504]

  # CloudFront keeps these for 10 s unless told otherwise, no-store or not. One
  # 503 of karui would then hold an image back from everybody.
  uncached_errors = [500, 502, 503, 504]

  own_pages = { for r in var.error_responses : r.code => r }
  errors = merge(
    { for c, r in local.own_pages : c => r },
    { for c in local.uncached_errors : c => {
      code          = c
      response_code = try(local.own_pages[c].response_code, null)
      page_path     = try(local.own_pages[c].page_path, null)
      ttl           = 0
    } },
  )

  query_names = try(tostring(var.query), null) == null ? [for n in var.query : tostring(n)] : []
  query_behavior = (
    try(tostring(var.query), "") == "all" ? "all" :
    length(local.query_names) > 0 ? "whitelist" : "none"
  )

  # The whole object is sensitive for the sake of its key.
  karui_origin_id = try(nonsensitive(var.karui.origin_id), "karui")
  origin_id       = try(var.origin.origin_id, "origin")
}

resource "aws_cloudfront_cache_policy" "images" {
  name        = "${var.name}-images"
  comment     = "Images through karui: Accept in the key"
  min_ttl     = 0 # more would override no-store, with which karui says 503
  default_ttl = min(var.default_ttl, var.max_ttl)
  max_ttl     = var.max_ttl

  parameters_in_cache_key_and_forwarded_to_origin {
    # Images are compressed as they are; the header would only split the cache.
    enable_accept_encoding_brotli = false
    enable_accept_encoding_gzip   = false

    cookies_config {
      cookie_behavior = "none"
    }

    headers_config {
      header_behavior = "whitelist"
      headers {
        items = distinct(concat(["Accept"], var.keyed_headers))
      }
    }

    query_strings_config {
      query_string_behavior = local.query_behavior
      dynamic "query_strings" {
        for_each = local.query_behavior == "whitelist" ? [1] : []
        content {
          items = local.query_names
        }
      }
    }
  }
}

resource "aws_cloudfront_function" "accept" {
  name    = "${var.name}-normalise-accept"
  comment = "Reduces Accept to one of four values"
  runtime = "cloudfront-js-2.0"
  publish = true
  # The same text as deploy/cloudfront/normalise-accept.js, which karui's tests
  # run; here, so that this folder is whole by itself.
  code = file("${path.module}/normalise-accept.js")
}

resource "aws_cloudfront_distribution" "this" {
  count = var.create_distribution ? 1 : 0

  enabled         = true
  comment         = var.comment
  aliases         = var.aliases
  http_version    = "http2and3"
  is_ipv6_enabled = true
  price_class     = var.price_class
  web_acl_id      = var.web_acl_id
  tags            = var.tags

  origin {
    origin_id   = local.karui_origin_id
    domain_name = var.karui.domain_name
    # One quick attempt: attempts multiply the response timeout as well, and the
    # site's own server is waiting to be asked.
    connection_attempts = 1
    connection_timeout  = 2

    custom_header {
      name  = "X-Karui-Key"
      value = var.karui.key
    }
    dynamic "custom_header" {
      for_each = nonsensitive(var.karui.routing) == null ? [] : [1]
      content {
        name  = "X-Routing"
        value = var.karui.routing
      }
    }

    custom_origin_config {
      http_port                = 80
      https_port               = var.karui.https_port
      origin_protocol_policy   = "https-only"
      origin_ssl_protocols     = ["TLSv1.2"]
      origin_read_timeout      = var.karui.response_timeout
      origin_keepalive_timeout = 60
    }
  }

  origin {
    origin_id                = local.origin_id
    domain_name              = var.origin.domain_name
    origin_access_control_id = var.origin.origin_access_control_id

    dynamic "custom_header" {
      for_each = var.origin.headers
      content {
        name  = custom_header.key
        value = custom_header.value
      }
    }
    dynamic "custom_origin_config" {
      for_each = var.origin.origin_access_control_id == null ? [1] : []
      content {
        http_port                = 80
        https_port               = 443
        origin_protocol_policy   = var.origin.protocol_policy
        origin_ssl_protocols     = ["TLSv1.2"]
        origin_read_timeout      = var.origin.response_timeout
        origin_keepalive_timeout = 5
      }
    }
  }

  # The order of the members is the priority.
  origin_group {
    origin_id = var.origin_group_id
    failover_criteria {
      status_codes = local.failover_codes
    }
    member {
      origin_id = local.karui_origin_id
    }
    member {
      origin_id = local.origin_id
    }
  }

  default_cache_behavior {
    target_origin_id         = local.origin_id
    viewer_protocol_policy   = "redirect-to-https"
    allowed_methods          = ["GET", "HEAD", "OPTIONS", "PUT", "POST", "PATCH", "DELETE"]
    cached_methods           = ["GET", "HEAD"]
    compress                 = true
    cache_policy_id          = var.default_cache_policy_id
    origin_request_policy_id = var.origin.origin_access_control_id == null ? var.default_origin_request_policy_id : null
  }

  dynamic "ordered_cache_behavior" {
    for_each = var.path_patterns
    content {
      path_pattern           = ordered_cache_behavior.value
      target_origin_id       = var.origin_group_id
      viewer_protocol_policy = "redirect-to-https"
      # Origin groups fail over for these three only.
      allowed_methods          = ["GET", "HEAD", "OPTIONS"]
      cached_methods           = ["GET", "HEAD"]
      compress                 = false
      cache_policy_id          = aws_cloudfront_cache_policy.images.id
      origin_request_policy_id = var.image_origin_request_policy_id

      function_association {
        event_type   = "viewer-request"
        function_arn = aws_cloudfront_function.accept.arn
      }
    }
  }

  dynamic "custom_error_response" {
    for_each = local.errors
    content {
      error_code            = custom_error_response.value.code
      error_caching_min_ttl = custom_error_response.value.ttl
      response_code         = custom_error_response.value.response_code
      response_page_path    = custom_error_response.value.page_path
    }
  }

  restrictions {
    geo_restriction {
      restriction_type = "none"
    }
  }

  viewer_certificate {
    cloudfront_default_certificate = var.certificate_arn == null
    acm_certificate_arn            = var.certificate_arn
    ssl_support_method             = var.certificate_arn == null ? null : "sni-only"
    minimum_protocol_version       = var.certificate_arn == null ? "TLSv1" : "TLSv1.2_2021"
  }

  lifecycle {
    # The order of the group belongs to karui-watchdog: it puts the site's own
    # server first while karui is down. Without this line the next apply of
    # anything would put karui back, down as it is; the provider even fetches a
    # new ETag when CloudFront refuses the old one. The price: failover codes
    # and ids of the group are not changed by terraform either. Take the line
    # out for such a change, and put it back.
    # A plan holds the order as it was when it was made: while the watchdog has
    # the site degraded, and after a swap, make a new plan before you apply.
    ignore_changes = [origin_group]

    precondition {
      condition     = var.karui != null && var.origin != null
      error_message = "Give karui and origin, or set create_distribution to false."
    }
    precondition {
      condition     = length(var.aliases) == 0 || var.certificate_arn != null
      error_message = "aliases need certificate_arn, a certificate in us-east-1 that covers them."
    }
  }
}
