"""Bodies of OTLP requests as JSON: one object per span. Read with the protocol's own package."""

import json
import sys
from pathlib import Path

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


def value(any_value):
    kind = any_value.WhichOneof("value")
    if kind == "array_value":
        return [value(one) for one in any_value.array_value.values]
    return getattr(any_value, kind)


def attributes(pairs):
    return {pair.key: value(pair.value) for pair in pairs}


def spans(body):
    for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield {
                    "resource": attributes(resource.resource.attributes),
                    "name": span.name,
                    "kind": span.kind,
                    "trace": span.trace_id.hex(),
                    "id": span.span_id.hex(),
                    "parent": span.parent_span_id.hex(),
                    "begin": span.start_time_unix_nano,
                    "end": span.end_time_unix_nano,
                    "failed": span.status.code == 2,
                    "attributes": attributes(span.attributes),
                }


found = [span for path in sys.argv[1:] for span in spans(Path(path).read_bytes())]
print(json.dumps(found))
