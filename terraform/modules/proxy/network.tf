data "aws_ec2_managed_prefix_list" "cloudfront" {
  name = "com.amazonaws.global.cloudfront.origin-facing"
}

resource "aws_security_group" "edge" {
  name_prefix = "${var.name}-edge-"
  description = "CloudFront to the load balancer of karui"
  vpc_id      = var.vpc_id
  tags        = var.tags

  lifecycle {
    create_before_destroy = true
  }
}

# The list counts as 55 of the 60 rules that a group may have, so the watchdog
# has a group of its own.
resource "aws_vpc_security_group_ingress_rule" "cloudfront" {
  security_group_id = aws_security_group.edge.id
  description       = "CloudFront"
  ip_protocol       = "tcp"
  from_port         = 443
  to_port           = 443
  prefix_list_id    = data.aws_ec2_managed_prefix_list.cloudfront.id
}

resource "aws_vpc_security_group_egress_rule" "edge" {
  security_group_id            = aws_security_group.edge.id
  description                  = "karui"
  ip_protocol                  = "tcp"
  from_port                    = local.port
  to_port                      = local.port
  referenced_security_group_id = aws_security_group.instance.id
}

resource "aws_security_group" "watchdog" {
  name_prefix = "${var.name}-watchdog-"
  description = "karui-watchdog to the load balancer of karui"
  vpc_id      = var.vpc_id
  tags        = var.tags

  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_vpc_security_group_ingress_rule" "watchdog" {
  for_each = toset(var.watchdog_cidrs)

  security_group_id = aws_security_group.watchdog.id
  description       = "karui-watchdog"
  ip_protocol       = "tcp"
  from_port         = 443
  to_port           = 443
  cidr_ipv4         = strcontains(each.value, ":") ? null : each.value
  cidr_ipv6         = strcontains(each.value, ":") ? each.value : null
}

resource "aws_security_group" "instance" {
  name_prefix = "${var.name}-instance-"
  description = "Machines of karui"
  vpc_id      = var.vpc_id
  tags        = var.tags

  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_vpc_security_group_ingress_rule" "instance" {
  security_group_id            = aws_security_group.instance.id
  description                  = "Load balancer"
  ip_protocol                  = "tcp"
  from_port                    = local.port
  to_port                      = local.port
  referenced_security_group_id = aws_security_group.edge.id
}

resource "aws_vpc_security_group_egress_rule" "instance" {
  for_each = toset(["0.0.0.0/0", "::/0"])

  security_group_id = aws_security_group.instance.id
  description       = "Servers of the sites, AWS, packages"
  ip_protocol       = "-1"
  cidr_ipv4         = strcontains(each.value, ":") ? null : each.value
  cidr_ipv6         = strcontains(each.value, ":") ? each.value : null
}

resource "aws_lb" "this" {
  name               = var.name
  load_balancer_type = "application"
  subnets            = var.public_subnet_ids
  security_groups    = [aws_security_group.edge.id, aws_security_group.watchdog.id]
  # Each side keeps a connection longer than the one before it, so that none is
  # closed just as a request goes out on it: CloudFront 60 s, this, karui 75 s
  # (limits.idle_timeout).
  idle_timeout = 70
  tags         = var.tags
}

resource "aws_lb_target_group" "this" {
  name                          = var.name
  vpc_id                        = var.vpc_id
  port                          = local.port
  protocol                      = "HTTP"
  load_balancing_algorithm_type = "least_outstanding_requests"
  # No longer than this does the load balancer wait for answers under way; then
  # SIGTERM, and karui's own drain.
  deregistration_delay = var.drain + 15
  tags                 = var.tags

  # A picture that went through a real conversion. Needs no secret.
  health_check {
    path                = "/.karui/ping.jpg"
    matcher             = "200"
    interval            = 10
    timeout             = 5
    healthy_threshold   = 2
    unhealthy_threshold = 3
  }
}

resource "aws_lb_listener" "https" {
  load_balancer_arn = aws_lb.this.arn
  port              = 443
  protocol          = "HTTPS"
  ssl_policy        = "ELBSecurityPolicy-TLS13-1-2-2021-06"
  certificate_arn   = var.certificate_arn
  tags              = var.tags

  # No check of X-Karui-Key here: a wrong key has to end in karui's 503, with its
  # reason, and the watchdog's ping has none.
  default_action {
    type             = "forward"
    target_group_arn = aws_lb_target_group.this.arn
  }
}

resource "aws_route53_record" "this" {
  count = var.zone_id == null ? 0 : 1

  zone_id = var.zone_id
  name    = var.hostname
  type    = "A"

  alias {
    name    = aws_lb.this.dns_name
    zone_id = aws_lb.this.zone_id
    # Failing over is CloudFront's part and the watchdog's, not that of DNS.
    evaluate_target_health = false
  }
}
