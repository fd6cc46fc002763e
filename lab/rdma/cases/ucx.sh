# Tests of the package internal/ucx over the RDMA device of guest b, without dma-copy.

ucx_tests() {
	keep /tmp/out/ucx.test -test.v -test.run "^($1)\$/^rdma"
	grep -q "^    --- PASS: .*/rdma" "$work/output" || fail "no test was over the RDMA device"
}

case_ucx_reads_and_messages() { ucx_tests 'TestGet.*|TestSend|TestHostileMessage'; }

case_ucx_addresses() { ucx_tests TestAddressesAreUnderstood; }

case_ucx_worker_memory() { ucx_tests TestWorkerMemory; }

# The sides of a connection are closed while it is being made, and when the peer is gone: no process ends.
# case_ucx_close: 600 s
case_ucx_close() { ucx_tests 'TestClose.*|TestEndpointAfterItsWorker|TestSenderIsLost'; }
