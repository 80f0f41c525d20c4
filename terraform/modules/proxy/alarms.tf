locals {
  balancer = { LoadBalancer = aws_lb.this.arn_suffix }
  targets  = { LoadBalancer = aws_lb.this.arn_suffix, TargetGroup = aws_lb_target_group.this.arn_suffix }
}

resource "aws_cloudwatch_metric_alarm" "none_healthy" {
  alarm_name          = "${var.name}-none-healthy"
  alarm_description   = "No karui passes its ping: every image comes from the site's own server, and the watchdog is about to swap."
  namespace           = "AWS/ApplicationELB"
  metric_name         = "HealthyHostCount"
  dimensions          = local.targets
  statistic           = "Maximum"
  period              = 60
  evaluation_periods  = 2
  comparison_operator = "LessThanThreshold"
  threshold           = 1
  treat_missing_data  = "breaching"
  alarm_actions       = var.alarm_topic_arns
  ok_actions          = var.alarm_topic_arns
  tags                = var.tags
}

resource "aws_cloudwatch_metric_alarm" "unhealthy" {
  alarm_name          = "${var.name}-unhealthy"
  alarm_description   = "A karui has failed its ping for five minutes. Its log and /status say why."
  namespace           = "AWS/ApplicationELB"
  metric_name         = "UnHealthyHostCount"
  dimensions          = local.targets
  statistic           = "Minimum"
  period              = 60
  evaluation_periods  = 5
  comparison_operator = "GreaterThanThreshold"
  threshold           = 0
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.alarm_topic_arns
  ok_actions          = var.alarm_topic_arns
  tags                = var.tags
}

resource "aws_cloudwatch_metric_alarm" "turned_away" {
  alarm_name          = "${var.name}-turned-away"
  alarm_description   = "More than 5 % of requests ended in a 5xx: karui turns them away, and viewers get originals. Look at X-Karui-Reason."
  evaluation_periods  = 5
  datapoints_to_alarm = 3
  comparison_operator = "GreaterThanThreshold"
  threshold           = 5
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.alarm_topic_arns
  ok_actions          = var.alarm_topic_arns
  tags                = var.tags

  metric_query {
    id          = "share"
    label       = "Requests turned away, percent"
    expression  = "IF(requests > 20, 100 * (FILL(karui, 0) + FILL(balancer, 0)) / requests, 0)"
    return_data = true
  }
  metric_query {
    id = "requests"
    metric {
      namespace   = "AWS/ApplicationELB"
      metric_name = "RequestCount"
      dimensions  = local.balancer
      period      = 60
      stat        = "Sum"
    }
  }
  metric_query {
    id = "karui"
    metric {
      namespace   = "AWS/ApplicationELB"
      metric_name = "HTTPCode_Target_5XX_Count"
      dimensions  = local.balancer
      period      = 60
      stat        = "Sum"
    }
  }
  metric_query {
    id = "balancer"
    metric {
      namespace   = "AWS/ApplicationELB"
      metric_name = "HTTPCode_ELB_5XX_Count"
      dimensions  = local.balancer
      period      = 60
      stat        = "Sum"
    }
  }
}

resource "aws_cloudwatch_metric_alarm" "slow" {
  alarm_name          = "${var.name}-slow"
  alarm_description   = "Mean time to the first byte is at 2 s or more; at 3 s (stress.latency) karui turns requests away."
  namespace           = "AWS/ApplicationELB"
  metric_name         = "TargetResponseTime"
  dimensions          = local.targets
  statistic           = "Average"
  period              = 60
  evaluation_periods  = 3
  comparison_operator = "GreaterThanOrEqualToThreshold"
  threshold           = 2
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.alarm_topic_arns
  ok_actions          = var.alarm_topic_arns
  tags                = var.tags
}
