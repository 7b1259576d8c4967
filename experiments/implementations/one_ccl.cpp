// What the contender oneccl calls: one communicator of all ranks, float32, each call waited for.
#include <cstring>

#include <oneapi/ccl.hpp>

// Never destroyed: MPI has ended by the time when a process destroys such objects.
static auto &store = *new ccl::shared_ptr_class<ccl::kvs>;
static ccl::communicator *comm;

static void offer(char *address)
{
    ccl::init();
    store = ccl::create_main_kvs();
    const auto own = store->get_address();
    memcpy(address, own.data(), own.size());
}

static void enter(int ranks, int rank, const char *address)
{
    ccl::init();
    if (!store) {
        ccl::kvs::address_type given;
        memcpy(given.data(), address, given.size());
        store = ccl::create_kvs(given);
    }
    comm = new ccl::communicator(ccl::create_communicator(ranks, rank, store));
}

static void allreduce(float *send, float *recv, size_t count)
{
    ccl::allreduce(send, recv, count, ccl::reduction::sum, *comm).wait();
}

static void bcast(float *send, float *, size_t count)
{
    ccl::broadcast(send, count, 0, *comm).wait();
}

static void allgather(float *send, float *recv, size_t count)
{
    ccl::allgather(send, recv, count, *comm).wait();
}

static void alltoall(float *send, float *recv, size_t count)
{
    ccl::alltoall(send, recv, count, *comm).wait();
}

static void reduce_scatter(float *send, float *recv, size_t count)
{
    ccl::reduce_scatter(send, recv, count, ccl::reduction::sum, *comm).wait();
}
