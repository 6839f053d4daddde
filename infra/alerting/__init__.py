"""What reaches people: alarms, alerts and webhooks."""
