package convert
