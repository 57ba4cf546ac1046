//! A worker with its reactor against a server on the other side of real sockets.
