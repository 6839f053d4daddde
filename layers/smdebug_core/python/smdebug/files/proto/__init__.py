"""The messages of event files as protobuf; the library's own reader does not use them.

Generated, in this folder's root `layers/smdebug_core/python`, by the oldest protoc whose code runs under
protobuf 5, 6 and 7 (26.x; from 27 on, generated code refuses runtimes of another major version):

    pip install 'grpcio-tools==1.63.2' 'setuptools<80'
    python -m grpc_tools.protoc -I. --python_out=. --pyi_out=. smdebug/files/proto/*.proto
"""
