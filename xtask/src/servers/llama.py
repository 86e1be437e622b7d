"""llama.cpp's own server out of the `xllamacpp` wheel: listens until its input ends or it is
killed. Says on its first line where, and what it was built for."""

import json
import sys
import time

import xllamacpp

asked = json.loads(sys.argv[1])
params = xllamacpp.CommonParams()
params.model.path = asked["model"]
params.hostnames = ["127.0.0.1"]
params.port = asked["port"]
params.n_parallel = asked["streams"]
params.n_ctx = asked["context"]
params.kv_unified = asked["unified"]
params.cpuparams.n_threads = asked["threads"]
params.cpuparams_batch.n_threads = asked["threads"]
params.n_gpu_layers = 0
server = xllamacpp.Server(params)
told = {
    "url": server.listening_address,
    "package": xllamacpp.__version__,
    "build": xllamacpp.BUILD_INFO if hasattr(xllamacpp, "BUILD_INFO") else None,
    "system_info": xllamacpp.get_system_info(),
}
print(json.dumps(told, default=str), flush=True)
while True:
    time.sleep(3600)
