#include "present/doctor.h"

#include <gtest/gtest.h>

#include <sstream>

namespace cudiag {
namespace {

Examination an_examination() {
    Examination examination;
    examination.python = "/venv/bin/python";
    examination.python_version = "3.11.7";
    examination.chosen_by = "PATH";
    examination.torch = "2.13.0+cu130";
    Finding headers;
    headers.slug = "build-missing-header";
    headers.title = "cusparse.h is missing";
    headers.fixes = {{"start from an image", "", false},
                     {"install them by pip", "pip install nvidia-cusparse", false}};
    headers.limits = "that no other header is missing is not known";
    Finding list;
    list.slug = "build-unsupported-arch";
    list.fixes = {{"name the architecture", "export TORCH_CUDA_ARCH_LIST=9.0", false}};
    Finding shm;
    shm.slug = "nccl-shm-too-small";
    shm.fixes = {{"give it more", "never run this", false}};
    examination.checks = {
        {Question::import, "torch", Health::green, "torch 2.13.0+cu130", false, std::nullopt},
        {Question::build, "headers", Health::red, "cusparse.h is in none of the 7 directories",
         false, headers},
        {Question::build, "architectures", Health::red, "no list and no GPU", false, list},
        {Question::launch, "shared-memory", Health::yellow, "/dev/shm has 64 MB", false, shm}};
    examination.answers = {
        {Question::import, Health::green, "torch 2.13.0+cu130, all of its libraries found"},
        {Question::build, Health::red, "cusparse.h is in none of the 7 directories"},
        {Question::load, Health::unknown, "nothing is known"},
        {Question::launch, Health::yellow, "/dev/shm has 64 MB"}};
    return examination;
}

TEST(RenderExamination, AnswersFirstThenTellsWhatIsAmiss) {
    const std::string text = render_examination(an_examination(), {.colour = false, .width = 90});
    const auto answers = text.find("import torch");
    const auto amiss = text.find("cudiag: red build: headers");
    const auto well = text.find("  ok torch");
    ASSERT_NE(answers, std::string::npos) << text;
    ASSERT_NE(amiss, std::string::npos) << text;
    ASSERT_NE(well, std::string::npos) << text;
    EXPECT_LT(answers, amiss);
    EXPECT_LT(amiss, well);
    EXPECT_NE(text.find("$ pip install nvidia-cusparse\n"), std::string::npos);
    EXPECT_NE(text.find("cudiag explain build-missing-header"), std::string::npos);
    EXPECT_NE(text.find("not known"), std::string::npos);
    EXPECT_EQ(text.find('\033'), std::string::npos) << "colour was not asked for";
    EXPECT_NE(
        render_examination(an_examination(), {.colour = true, .width = 90}).find("\033[1;31m"),
        std::string::npos);
}

TEST(ExaminationJson, HasWhatTheDocumentationNames) {
    const auto json = examination_json(an_examination());
    EXPECT_EQ(json["schema"], kDoctorSchema);
    EXPECT_EQ(json["python"]["path"], "/venv/bin/python");
    ASSERT_EQ(json["answers"].size(), 4U);
    EXPECT_EQ(json["answers"][1]["question"], "build");
    EXPECT_EQ(json["answers"][1]["health"], "red");
    EXPECT_EQ(json["checks"][1]["finding"]["slug"], "build-missing-header");
    EXPECT_TRUE(json["checks"][0]["finding"].is_null());
}

TEST(RepairScript, HoldsTheFirstCommandOfWhatIsRedUnderItsReason) {
    const std::string script = repair_script(an_examination());
    EXPECT_EQ(script.rfind("#!/bin/sh\n", 0), 0U);
    const auto why = script.find("# cusparse.h is in none of the 7 directories");
    const auto command = script.find("\npip install nvidia-cusparse\n");
    const auto setting = script.find("\nexport TORCH_CUDA_ARCH_LIST=9.0\n");
    ASSERT_NE(why, std::string::npos) << script;
    ASSERT_NE(command, std::string::npos) << script;
    ASSERT_NE(setting, std::string::npos) << script;
    EXPECT_LT(why, command);
    EXPECT_LT(command, setting) << "settings are for the user's own shell: last";
    EXPECT_EQ(script.find("never run this"), std::string::npos)
        << "yellow is no reason to change a machine";
}

TEST(RepairScript, IsEmptyWhereNoCommandMends) {
    Examination examination = an_examination();
    examination.checks.resize(1);
    EXPECT_TRUE(repair_script(examination).empty());
}

}  // namespace
}  // namespace cudiag
