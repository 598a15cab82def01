#include <catch2/catch_test_macros.hpp>
#include <cstdio>
#include "tests/support/asio_loop.hpp"
#include "transports/ucx/ucx_transport.hpp"
namespace troupe {
struct rec : transport_listener {
  int n=0; size_t bytes=0; std::string loss; std::vector<std::byte> buf; int bulk=0;
  bool aligned=true;
  void on_message(incarnation_id, std::span<const std::byte> p) override { ++n; bytes+=p.size(); aligned &= reinterpret_cast<uintptr_t>(p.data())%8==0; }
  std::span<std::byte> on_bulk_announced(incarnation_id, const bulk_announcement& w) override { buf.assign(w.bytes, std::byte{0}); return buf; }
  void on_bulk_received(incarnation_id, std::uint64_t, expected<void> r) override { if (r) ++bulk; else std::printf("bulk failed %s\n", r.failure().text.c_str()); }
  void on_path_lost(incarnation_id, const error& c) override { loss = c.text; }
};
TEST_CASE("spike") {
  test::asio_loop loop;
  rec ra, rb;
  auto a = ucx_transport::open(loop.context, loop.clock, random_id_from<incarnation_id>(loop.random), {});
  REQUIRE(a);
  auto b = ucx_transport::open(loop.context, loop.clock, random_id_from<incarnation_id>(loop.random), {});
  REQUIRE(b);
  auto& A=**a; auto& B=**b;
  A.set_listener(&ra); B.set_listener(&rb);
  job_id job{1,2}; A.set_job(job); B.set_job(job);
  REQUIRE(A.connect(B.self(), B.local_address()));
  std::vector<std::byte> m(100);
  for (int i=0;i<10;++i) REQUIRE(A.send(B.self(), m));
  REQUIRE(loop.run_until([&]{return rb.n==10;}));
  std::printf("%s\n", A.lanes(B.self()).c_str());
  std::vector<std::byte> big(256*1024);
  REQUIRE(B.send(A.self(), big));
  REQUIRE(loop.run_until([&]{return ra.n==1;}));
  CHECK(ra.aligned); CHECK(rb.aligned);
  std::vector<std::byte> bulk(64<<20, std::byte{7});
  std::string res="none";
  auto t=std::chrono::steady_clock::now();
  for (int k=0;k<3;++k) {
  res="none";
  t=std::chrono::steady_clock::now();
  A.send_bulk(B.self(), 5, bulk, [&](expected<void> r){ res = r? "ok": r.failure().text; });
  REQUIRE(loop.run_until([&]{return res!="none";}));
  std::printf("bulk %s %f ms\n", res.c_str(), std::chrono::duration<double,std::milli>(std::chrono::steady_clock::now()-t).count());
  }
  CHECK(rb.buf==bulk);
  A.close(B.self());
  REQUIRE(loop.run_until([&]{return !rb.loss.empty();}));
  std::printf("loss %s\n", rb.loss.c_str());
  REQUIRE(loop.run_until([&]{return A.idle() && B.idle();}));
}
}
