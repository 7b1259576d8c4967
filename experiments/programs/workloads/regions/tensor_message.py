"""The protobuf message of a tensor: what protoc would make of the lines below.

message Tensor { string dtype = 1; repeated int64 shape = 2; bytes data = 3; }
"""

import importlib
from functools import cache
from typing import Any


@cache
def tensor_class() -> Any:
    """The class of the message."""
    descriptors: Any = importlib.import_module("google.protobuf.descriptor_pb2")
    pools: Any = importlib.import_module("google.protobuf.descriptor_pool")
    factory: Any = importlib.import_module("google.protobuf.message_factory")
    file = descriptors.FileDescriptorProto(name="tensor.proto", package="hbmcomm", syntax="proto3")
    message = file.message_type.add(name="Tensor")
    kind = descriptors.FieldDescriptorProto
    for number, (name, type_, label) in enumerate(
        (
            ("dtype", kind.TYPE_STRING, kind.LABEL_OPTIONAL),
            ("shape", kind.TYPE_INT64, kind.LABEL_REPEATED),
            ("data", kind.TYPE_BYTES, kind.LABEL_OPTIONAL),
        ),
        1,
    ):
        message.field.add(name=name, number=number, type=type_, label=label)
    pool = pools.DescriptorPool()
    pool.Add(file)
    return factory.GetMessageClass(pool.FindMessageTypeByName("hbmcomm.Tensor"))
