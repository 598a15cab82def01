// gRPC: the baseline `grpc` of `bench message`: one stream each way for round trips, one way for the rest.
//
// Its synchronous interface, whose threads wait in the kernel: the fastest of its interfaces for one stream.
#include <cstdio>

#include <bench/message/exchange.grpc.pb.h> // generated
#include <grpcpp/grpcpp.h>

#include "bench/message/program.hpp"
#include "bench/support/peer_link.hpp"

namespace {

using namespace troupe;
using namespace troupe::bench;

constexpr std::uint64_t flush_every = 64; // messages of the stream that gRPC may gather into one write

class exchange final : public Exchange::Service {
public:
  grpc::Status Talk(grpc::ServerContext*, grpc::ServerReaderWriter<Ping, Ping>* stream) override {
    Ping each;
    while (stream->Read(&each))
      stream->Write(each);
    return grpc::Status::OK;
  }
  grpc::Status Push(grpc::ServerContext*, grpc::ServerReader<Piece>* stream, Total* total) override {
    Piece each;
    std::uint64_t messages = 0;
    bench_clock::time_point first;
    while (stream->Read(&each))
      if (++messages == 1) first = bench_clock::now();
    total->set_messages(messages);
    total->set_seconds(seconds_since(first));
    return grpc::Status::OK;
  }
};

int fail(const error& cause) {
  std::fprintf(stderr, "message_grpc: %s\n", cause.text.c_str());
  return exit_code_of(cause.code);
}

int run_peer(const program_options& options) {
  auto link = peer_link::inherited(options.peer);
  exchange service;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const auto server = builder.BuildAndStart();
  if (server == nullptr) return fail({errc::internal, "no server"});
  if (auto said = link.say(std::to_string(port)); !said) return fail(said.failure());
  (void)link.hear(); // until the other end is gone
  server->Shutdown();
  return 0;
}

expected<void> talk(Exchange::Stub& stub, const program_options& options, std::vector<double>& half_rtt_us) {
  grpc::ClientContext context;
  const auto stream = stub.Talk(&context);
  Ping each;
  half_rtt_us.reserve(options.round_trips);
  for (std::uint64_t i = 0; i < options.warm_up() + options.round_trips; ++i) {
    each.set_number(i);
    const auto start = bench_clock::now();
    if (!stream->Write(each) || !stream->Read(&each)) return error{errc::path_lost, "the stream broke"};
    if (i >= options.warm_up()) half_rtt_us.push_back(seconds_since(start) * 1e6 / 2);
  }
  stream->WritesDone();
  if (const auto ended = stream->Finish(); !ended.ok()) return error{errc::path_lost, ended.error_message()};
  return {};
}

// The time at the receiver.
expected<double> push(Exchange::Stub& stub, std::uint64_t messages, std::size_t bytes, std::uint64_t flush) {
  grpc::ClientContext context;
  Total total;
  const auto stream = stub.Push(&context, &total);
  Piece each;
  each.set_data(std::string(bytes, 'x'));
  for (std::uint64_t i = 1; i <= messages; ++i) {
    grpc::WriteOptions how;
    if (i % flush != 0 && i != messages) how.set_buffer_hint();
    if (!stream->Write(each, how)) return error{errc::path_lost, "the stream broke"};
  }
  stream->WritesDone();
  if (const auto ended = stream->Finish(); !ended.ok()) return error{errc::path_lost, ended.error_message()};
  if (total.messages() != messages) return error{errc::internal, "messages are missing"};
  return total.seconds();
}

int run_driver(const program_options& options) {
  auto link = peer_link::start(peer_arguments(options));
  if (!link) return fail(link.failure());
  const auto port = link->hear();
  if (!port) return fail(port.failure());
  const auto channel = grpc::CreateChannel("127.0.0.1:" + *port, grpc::InsecureChannelCredentials());
  const auto stub = Exchange::NewStub(channel);
  program_result result;
  if (auto talked = talk(*stub, options, result.half_rtt_us); !talked) return fail(talked.failure());
  const auto streamed = push(*stub, options.stream, piece_bytes, flush_every);
  if (!streamed) return fail(streamed.failure());
  result.stream_s = *streamed;
  const auto start = bench_clock::now();
  if (auto pushed = push(*stub, options.bulk, bulk_bytes, 1); !pushed) return fail(pushed.failure());
  result.bulk_s = seconds_since(start);
  print_result(options, result);
  return 0;
}

} // namespace

int main(int argc, char** argv) {
  const auto line = parse_options(argc, argv, "gRPC streams between two processes");
  if (line.exit_code) return *line.exit_code;
  return line.options.peer >= 0 ? run_peer(line.options) : run_driver(line.options);
}
