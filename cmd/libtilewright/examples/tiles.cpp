// Tiles of a fusion with an owner for results: tiles MODULE
#include <cstdint>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>

#include "tilewright.h"

namespace {

using Text = std::unique_ptr<char, decltype(&tilewright_free)>;

std::string result(int status, char *text) {
  Text owned(text, tilewright_free);
  if (status) throw std::runtime_error(owned ? owned.get() : tilewright_status_text(status));
  return owned.get();
}

}  // namespace

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  std::ifstream file(argv[1]);
  const std::string module{std::istreambuf_iterator<char>(file), {}};
  char *text = nullptr;
  int status = tilewright_tiles(module.data(), module.size(), nullptr, nullptr, 0, nullptr, 0, &text);
  std::cout << result(status, text) << "\n";
  const std::int64_t sizes[] = {64};
  try {
    status = tilewright_tiles(module.data(), module.size(), nullptr, sizes, 1, nullptr, 0, &text);
    result(status, text);
  } catch (const std::runtime_error &e) {
    std::cout << "refused: " << e.what() << "\n";
    return 0;
  }
  return 1;
}
