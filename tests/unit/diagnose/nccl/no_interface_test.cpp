#include "tests/unit/diagnose/nccl/facts.h"

namespace cudiag {
namespace {

using testing::failed_of;
using testing::said_of;

Process with_interface_name(const std::string& value) {
    Process process = failed_of(testing::invalid_usage("Bootstrap : no socket interface found"));
    process.environment["NCCL_SOCKET_IFNAME"] = value;
    return process;
}

std::optional<Finding> nccl_no_interface(const Process& process, const Machine& machine) {
    return said_of({process}, machine);
}

Machine with_interfaces() {
    Machine machine;
    machine.interfaces = {
        {.name = "lo", .addresses = {"127.0.0.1"}, .up = true, .loopback = true},
        {.name = "docker0", .addresses = {"172.17.0.1"}, .up = true, .loopback = false},
        {.name = "enp90s0np0", .addresses = {"10.0.0.4"}, .up = true, .loopback = false}};
    return machine;
}

TEST(NcclNoInterface, NamesTheVariableAndTheInterfaceThatWouldDo) {
    const auto finding = nccl_no_interface(with_interface_name("eth99"), with_interfaces());
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->title,
              "NCCL_SOCKET_IFNAME=\"eth99\" fits no network interface of this machine");
    EXPECT_EQ(finding->evidence["read_as"], "only interfaces whose name begins with eth99");
    EXPECT_EQ(finding->evidence["interfaces"].size(), 3U);
    EXPECT_EQ(finding->evidence["would_do"], (std::vector<std::string>{"enp90s0np0"}));
    ASSERT_EQ(finding->fixes.size(), 2U);
    EXPECT_EQ(finding->fixes[0].command, "unset NCCL_SOCKET_IFNAME");
    EXPECT_EQ(finding->fixes[1].command, "export NCCL_SOCKET_IFNAME=enp90s0np0");
}

TEST(NcclNoInterface, ProposesNothingWhereTheVariableFits) {
    const auto finding = nccl_no_interface(with_interface_name("enp90"), with_interfaces());
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->confidence, Confidence::likely);
    EXPECT_TRUE(finding->fixes.empty());
}

TEST(NcclNoInterface, IsSilentOfProgramsThatEndedWell) {
    Process process = with_interface_name("eth99");
    process.end_status = 0;
    EXPECT_FALSE(nccl_no_interface(process, with_interfaces()));
}

// As NCCL 2.27.3 and 2.28.9 were seen to read it.
TEST(NcclInterfaceChoice, ReadsTheVariableAsNcclDoes) {
    const auto fits = [](const std::string& value, const std::string& name) {
        return chosen(interface_choice(value), name);
    };
    EXPECT_TRUE(fits("eth", "eth0"));
    EXPECT_TRUE(fits("=eth0", "eth0"));
    EXPECT_FALSE(fits("=eth", "eth0"));
    EXPECT_FALSE(fits("==eth0", "eth0"));
    EXPECT_TRUE(fits("eth0:1234", "eth0"));
    EXPECT_TRUE(fits("^lo", "eth0"));
    EXPECT_FALSE(fits("^lo", "lo"));
    EXPECT_TRUE(fits("^=lo", "lo0"));
    EXPECT_TRUE(fits("ib,eth", "eth1"));
    EXPECT_TRUE(fits("", "eth0"));
}

}  // namespace
}  // namespace cudiag
