"""What schemathesis cannot know: the served model's name. Without it almost every request
would end at the name."""

import schemathesis


@schemathesis.hook
def map_body(context, body):
    if isinstance(body, dict):
        body.pop("model", None)
    return body
