#include "diagnose/knowledge/data_object.h"

#include <fmt/core.h>

#include <utility>

#include "diagnose/knowledge/tables.h"

namespace cudiag {

DataObject::DataObject(const nlohmann::json& value, std::string place)
    : value_{value}, place_{std::move(place)} {
    if (!value_.is_object()) {
        fail("is not an object");
    }
}

void DataObject::fail(const std::string& why) const {
    throw KnowledgeError(place_ + ": " + why);
}

const nlohmann::json* DataObject::find(const std::string& key) {
    read_.insert(key);
    const auto found = value_.find(key);
    return found == value_.end() ? nullptr : &*found;
}

std::string DataObject::text(const std::string& key) {
    std::string result = optional_text(key);
    if (result.empty()) {
        fail("'" + key + "' is absent or empty");
    }
    return result;
}

std::string DataObject::optional_text(const std::string& key) {
    const nlohmann::json* value = find(key);
    if (value == nullptr) {
        return {};
    }
    if (!value->is_string()) {
        fail("'" + key + "' is not a string");
    }
    return value->get<std::string>();
}

bool DataObject::flag(const std::string& key) {
    const nlohmann::json* value = find(key);
    if (value == nullptr) {
        return false;
    }
    if (!value->is_boolean()) {
        fail("'" + key + "' is not true or false");
    }
    return value->get<bool>();
}

std::vector<std::string> DataObject::texts(const std::string& key) {
    std::vector<std::string> result;
    const nlohmann::json* value = find(key);
    if (value == nullptr) {
        return result;
    }
    if (!value->is_array()) {
        fail("'" + key + "' is not a list");
    }
    for (const nlohmann::json& item : *value) {
        if (!item.is_string() || item.get_ref<const std::string&>().empty()) {
            fail("'" + key + "' holds something that is not a text");
        }
        result.push_back(item.get<std::string>());
    }
    return result;
}

std::vector<DataObject> DataObject::objects(const std::string& key) {
    std::vector<DataObject> result = optional_objects(key);
    if (result.empty()) {
        fail("'" + key + "' is absent or empty");
    }
    return result;
}

std::vector<DataObject> DataObject::optional_objects(const std::string& key) {
    std::vector<DataObject> result;
    const nlohmann::json* value = find(key);
    if (value == nullptr) {
        return result;
    }
    if (!value->is_array()) {
        fail("'" + key + "' is not a list");
    }
    result.reserve(value->size());
    for (std::size_t i = 0; i < value->size(); ++i) {
        result.emplace_back((*value)[i], fmt::format("{}.{}[{}]", place_, key, i));
    }
    return result;
}

std::vector<std::pair<std::string, std::string>> DataObject::pairs(const std::string& key) {
    std::vector<std::pair<std::string, std::string>> result;
    const nlohmann::json* value = find(key);
    if (value == nullptr) {
        return result;
    }
    if (!value->is_object()) {
        fail("'" + key + "' is not an object");
    }
    for (const auto& [name, item] : value->items()) {
        if (!item.is_string() || item.get_ref<const std::string&>().empty()) {
            fail(fmt::format("'{}.{}' is not a text", key, name));
        }
        result.emplace_back(name, item.get<std::string>());
    }
    return result;
}

int DataObject::code_in(const std::string& text) const {
    const bool digits = !text.empty() && text.size() < 5 &&
                        text.find_first_not_of("0123456789") == std::string::npos;
    if (!digits) {
        fail("'" + text + "' is not a code");
    }
    return std::stoi(text);
}

void DataObject::nothing_else() const {
    for (const auto& item : value_.items()) {
        if (read_.count(item.key()) == 0) {
            fail("unknown key '" + item.key() + "'");
        }
    }
}

DataObject data_file(std::string_view json, const std::string& name, nlohmann::json& keep) {
    try {
        keep = nlohmann::json::parse(json.begin(), json.end(), nullptr, true, true);
    } catch (const nlohmann::json::exception& error) {
        throw KnowledgeError(name + ": " + error.what());
    }
    return {keep, name};
}

}  // namespace cudiag
