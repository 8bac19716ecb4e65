// A JSON object of a data file, read strictly: every error names the place, and a key that nobody
// asked for is one.
#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace cudiag {

// Valid while the JSON it was made from lives. All readers throw KnowledgeError.
class DataObject {
  public:
    // `place` is how errors call it: "libraries.json: families[3]".
    DataObject(const nlohmann::json& value, std::string place);

    std::string text(const std::string& key);  // required, not empty
    std::string optional_text(const std::string& key);

    // An error's number, which is written as a text of up to four digits: "700".
    int code(const std::string& key) { return code_in(text(key)); }

    int code_in(const std::string& text) const;
    bool flag(const std::string& key);  // false when absent

    bool has(const std::string& key) const { return value_.contains(key); }

    std::vector<std::string> texts(const std::string& key);   // empty when absent
    std::vector<DataObject> objects(const std::string& key);  // required, not empty
    std::vector<DataObject> optional_objects(const std::string& key);
    std::vector<std::pair<std::string, std::string>> pairs(const std::string& key);  // {"a": "b"}

    // To be called when all known keys were read: a misspelt key is an error, not a silent nothing.
    void nothing_else() const;
    [[noreturn]] void fail(const std::string& why) const;

  private:
    const nlohmann::json* find(const std::string& key);

    const nlohmann::json& value_;
    std::string place_;
    std::set<std::string> read_;
};

// Throws KnowledgeError where the map has the key; `called` is how the error names it.
template <class Map, class Key, class Value>
void put_once(Map& map, const DataObject& at, Key key, Value value, const std::string& called) {
    if (!map.emplace(std::move(key), std::move(value)).second) {
        at.fail("'" + called + "' occurs twice");
    }
}

template <class Map, class Value>
void put_once(Map& map, const DataObject& at, const std::string& key, Value value) {
    put_once(map, at, key, std::move(value), key);
}

// The top object of a data file. `keep` receives the parsed JSON and must outlive the result.
DataObject data_file(std::string_view json, const std::string& name, nlohmann::json& keep);

}  // namespace cudiag
