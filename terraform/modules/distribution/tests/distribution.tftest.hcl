mock_provider "aws" {}

variables {
  karui = {
    domain_name = "karui.example.com"
    key         = "one-secret"
    routing     = "shop"
  }
  origin = { domain_name = "origin.example.com" }
}

run "group" {
  assert {
    condition     = [for m in one(aws_cloudfront_distribution.this[0].origin_group).member : m.origin_id] == ["karui", "origin"]
    error_message = "karui comes first in the group, the site's own server second"
  }
  assert {
    condition     = toset(one(aws_cloudfront_distribution.this[0].origin_group).failover_criteria[0].status_codes) == toset([403, 500, 502, 503, 504])
    error_message = "the group fails over on 403, 500, 502, 503 and 504"
  }
  assert {
    condition     = output.watchdog_site.origin_group_id == "images" && output.watchdog_site.proxy_origin_id == "karui" && output.watchdog_site.direct_origin_id == "origin"
    error_message = "the output for watchdog.yaml names the group and its members"
  }
}

run "swap_is_left_alone" {
  # The ids of a group that was swapped, or otherwise changed, stay as they are.
  variables {
    origin_group_id = "other"
  }
  assert {
    condition     = one(aws_cloudfront_distribution.this[0].origin_group).origin_id == "images"
    error_message = "terraform must not write the origin group again: it would undo a swap"
  }
}

run "karui_origin" {
  assert {
    condition = one([for o in aws_cloudfront_distribution.this[0].origin : [
      o.connection_attempts, o.connection_timeout, o.custom_origin_config[0].origin_read_timeout, o.custom_origin_config[0].origin_keepalive_timeout
    ] if o.origin_id == "karui"]) == [1, 2, 10, 60]
    error_message = "attempts 1, connect 2 s, response 10 s, keep-alive 60 s"
  }
  assert {
    condition     = one([for o in aws_cloudfront_distribution.this[0].origin : { for h in o.custom_header : h.name => h.value } if o.origin_id == "karui"]) == { "X-Karui-Key" = "one-secret", "X-Routing" = "shop" }
    error_message = "karui gets its key and the site's id"
  }
  assert {
    condition     = alltrue([for o in aws_cloudfront_distribution.this[0].origin : length(o.custom_header) == 0 if o.origin_id == "origin"])
    error_message = "the site's own server must not learn the key"
  }
}

run "no_routing" {
  variables {
    karui = { domain_name = "karui.example.com", key = "one-secret" }
  }
  assert {
    condition     = one([for o in aws_cloudfront_distribution.this[0].origin : [for h in o.custom_header : h.name] if o.origin_id == "karui"]) == ["X-Karui-Key"]
    error_message = "no X-Routing without a routing id: an unknown one would turn every request away"
  }
}

run "behaviours" {
  assert {
    condition = alltrue([for b in aws_cloudfront_distribution.this[0].ordered_cache_behavior :
      b.target_origin_id == "images" && b.cache_policy_id == aws_cloudfront_cache_policy.images.id &&
      toset(b.allowed_methods) == toset(["GET", "HEAD", "OPTIONS"]) &&
      one(b.function_association).event_type == "viewer-request" && one(b.function_association).function_arn == aws_cloudfront_function.accept.arn
    ])
    error_message = "every image path goes to the group, with the policy and the function"
  }
  assert {
    condition     = [for b in aws_cloudfront_distribution.this[0].ordered_cache_behavior : b.path_pattern] == [for p in var.path_patterns : p]
    error_message = "the patterns keep their order"
  }
  assert {
    condition     = aws_cloudfront_distribution.this[0].default_cache_behavior[0].target_origin_id == "origin"
    error_message = "everything else never passes karui"
  }
}

run "cache_policy" {
  assert {
    condition     = contains(aws_cloudfront_cache_policy.images.parameters_in_cache_key_and_forwarded_to_origin[0].headers_config[0].headers[0].items, "Accept")
    error_message = "Accept belongs in the key"
  }
  assert {
    condition     = aws_cloudfront_cache_policy.images.min_ttl == 0 && aws_cloudfront_cache_policy.images.max_ttl == 86400 && aws_cloudfront_cache_policy.images.default_ttl <= 3600
    error_message = "TTLs of 0, at most 1 h, and 24 h"
  }
  assert {
    condition     = aws_cloudfront_cache_policy.images.parameters_in_cache_key_and_forwarded_to_origin[0].query_strings_config[0].query_string_behavior == "all"
    error_message = "query strings are in the key as karui's default has them"
  }
}

run "query_names" {
  variables {
    query = ["v", "size"]
  }
  assert {
    condition = (
      aws_cloudfront_cache_policy.images.parameters_in_cache_key_and_forwarded_to_origin[0].query_strings_config[0].query_string_behavior == "whitelist" &&
      aws_cloudfront_cache_policy.images.parameters_in_cache_key_and_forwarded_to_origin[0].query_strings_config[0].query_strings[0].items == toset(["v", "size"])
    )
    error_message = "named parameters are the only ones in the key"
  }
}

run "query_none" {
  variables {
    query = "none"
  }
  assert {
    condition     = aws_cloudfront_cache_policy.images.parameters_in_cache_key_and_forwarded_to_origin[0].query_strings_config[0].query_string_behavior == "none"
    error_message = "no parameter is in the key"
  }
}

run "errors" {
  variables {
    error_responses = [
      { code = 404, response_code = 404, page_path = "/404.html" },
      { code = 503, response_code = 503, page_path = "/sorry.html", ttl = 60 },
    ]
  }
  assert {
    condition = { for r in aws_cloudfront_distribution.this[0].custom_error_response : r.error_code => r.error_caching_min_ttl } == {
      404 = 10, 500 = 0, 502 = 0, 503 = 0, 504 = 0
    }
    error_message = "500, 502, 503 and 504 are never kept, whatever pages the site has"
  }
  assert {
    condition     = one([for r in aws_cloudfront_distribution.this[0].custom_error_response : r.response_page_path if r.error_code == 503]) == "/sorry.html"
    error_message = "the site's own page stays"
  }
}

run "function" {
  assert {
    condition     = aws_cloudfront_function.accept.code == file("normalise-accept.js") && aws_cloudfront_function.accept.publish && aws_cloudfront_function.accept.runtime == "cloudfront-js-2.0"
    error_message = "the function is the tested one, published"
  }
  assert {
    condition     = length(aws_cloudfront_function.accept.code) <= 10240
    error_message = "CloudFront takes functions of up to 10 KB"
  }
}

run "existing_distribution" {
  variables {
    create_distribution = false
    karui               = null
    origin              = null
  }
  assert {
    condition     = length(aws_cloudfront_distribution.this) == 0 && output.distribution_id == null
    error_message = "no distribution is made"
  }
  assert {
    condition     = output.pieces.cache_policy_id == aws_cloudfront_cache_policy.images.id && output.pieces.function_arn == aws_cloudfront_function.accept.arn
    error_message = "the pieces are there to be used"
  }
}

run "bucket_as_origin" {
  variables {
    origin = {
      domain_name              = "shop.s3.ap-northeast-1.amazonaws.com"
      origin_access_control_id = "E2ABC"
    }
  }
  assert {
    condition     = one([for o in aws_cloudfront_distribution.this[0].origin : length(o.custom_origin_config) if o.origin_id == "origin"]) == 0
    error_message = "a bucket with origin access control has no custom origin settings"
  }
}

run "refuses_no_key" {
  command = plan
  variables {
    karui = { domain_name = "karui.example.com", key = "" }
  }
  expect_failures = [var.karui]
}

run "refuses_timeouts_that_do_not_nest" {
  command = plan
  variables {
    karui = { domain_name = "karui.example.com", key = "one-secret", deadline = 10, response_timeout = 10 }
  }
  expect_failures = [var.karui]
}

run "refuses_long_ttls" {
  command = plan
  variables {
    max_ttl     = 31536000
    default_ttl = 86400
  }
  expect_failures = [var.max_ttl, var.default_ttl]
}

run "refuses_odd_query" {
  command = plan
  variables {
    query = "some"
  }
  expect_failures = [var.query]
}

run "refuses_a_distribution_without_origins" {
  command = plan
  variables {
    karui  = null
    origin = null
  }
  expect_failures = [aws_cloudfront_distribution.this]
}
