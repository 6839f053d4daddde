"""Actions of a rule that fires: stop the training job, send an email or a text message."""

from smdebug.rules.action.action import ActionOutcome, Actions, listed_actions
from smdebug.rules.action.message_action import MessageAction
from smdebug.rules.action.stop_training_action import StopTrainingAction
from smdebug.rules.action.zoom_in_action import ZoomInAction

__all__ = [
    "ActionOutcome",
    "Actions",
    "MessageAction",
    "StopTrainingAction",
    "ZoomInAction",
    "listed_actions",
]
