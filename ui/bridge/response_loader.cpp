// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/bridge/response_loader.h"

#include <fmt/format.h>

#include <QFile>
#include <QFileInfo>
#include <algorithm>

#include "analysis/import/kld_file.h"
#include "analysis/import/response_file.h"
#include "analysis/responses/response_lint.h"
#include "ui/models/token_text.h"

namespace driftscope::ui {
namespace {

constexpr std::uint64_t kSeed = 1;  // as on the command line
constexpr std::size_t kMostPartners = 20'000;

const QByteArray kHdf5Signature("\x89HDF\r\n\x1a\n", 8);

tl::unexpected<Error> overtaken() { return fail(ErrorKind::usage, "overtaken by a newer request"); }

// Read and not mapped: a file that is written anew meanwhile would end the program.
Result<QByteArray> bytes_of(QFile& file) {
  const std::string path = file.fileName().toStdString();
  if (QFileInfo(file).isDir()) {
    return fail(ErrorKind::malformed, fmt::format("{}: is a folder; open the files in it", path));
  }
  if (!file.open(QIODevice::ReadOnly)) {
    return fail(ErrorKind::malformed,
                fmt::format("{}: cannot be read ({})", path, file.errorString().toStdString()));
  }
  QByteArray bytes = file.readAll();
  if (file.error() != QFileDevice::NoError) {
    return fail(ErrorKind::malformed,
                fmt::format("{}: cannot be read ({})", path, file.errorString().toStdString()));
  }
  if (bytes.isEmpty())
    return fail(ErrorKind::malformed, fmt::format("{}: is empty; there is no answer in it", path));
  return bytes;
}

Result<std::vector<Response>> read_one(const QString& path, const std::function<bool()>& stale) {
  QFile file(path);
  const auto content = bytes_of(file);
  if (!content) return tl::unexpected(content.error());
  const std::string_view bytes(content->constData(), static_cast<std::size_t>(content->size()));
  const std::string name = path.toStdString();
  if (content->startsWith(kHdf5Signature)) {
    return fail(ErrorKind::usage,
                fmt::format("{}: is a capture; open it alone, not among responses", name));
  }
  if (is_kld_file(bytes)) {
    return fail(ErrorKind::usage,
                fmt::format("{}: is a llama.cpp logit file; compare two of them with driftscope "
                            "vendor BASE OTHER",
                            name));
  }
  std::vector<Response> responses;
  const auto read = read_responses(bytes, name, [&](Response&& response) -> Result<void> {
    if (stale()) return overtaken();
    grade_response(response);
    responses.push_back(std::move(response));
    return {};
  });
  if (!read) return tl::unexpected(read.error());
  return responses;
}

}  // namespace

bool is_capture_file(const QString& path) {
  QFile file(path);
  if (!QFileInfo(path).isDir() && file.open(QIODevice::ReadOnly)) {
    // A capture that is being written has its signature from the first flush on.
    if (file.read(8) == kHdf5Signature) return true;
    if (file.size() > 0) return false;
  }
  const QString suffix = QFileInfo(path).suffix().toLower();
  return suffix == QLatin1String("h5") || suffix == QLatin1String("hdf5") ||
         suffix == QLatin1String("part");
}

Result<ResponseFilesPointer> read_response_files(const QStringList& paths, Generation generation,
                                                 const std::atomic<Generation>& newest) {
  const auto stale = [&] { return generation != newest.load(); };
  auto files = std::make_shared<ResponseFiles>();
  files->paths = paths;
  for (const QString& path : paths) {
    auto responses = read_one(path, stale);
    if (!responses) return tl::unexpected(responses.error());
    files->files.push_back(std::move(*responses));
  }
  if (stale()) return overtaken();
  index_answers(*files);
  if (files->answered == 0) {
    const std::string why =
        files->failures.isEmpty() ? std::string() : ": " + files->failures.front().toStdString();
    return fail(
        ErrorKind::malformed,
        fmt::format("no answer in {}{}", paths.join(QStringLiteral(", ")).toStdString(), why));
  }
  return ResponseFilesPointer(std::move(files));
}

void ResponseReader::read(Generation generation, const QStringList& paths) {
  if (generation != m_newest) return;  // overtaken while it waited
  auto files = read_response_files(paths, generation, m_newest);
  if (!files) {
    emit failed(generation, escaped_text(files.error().message));
    return;
  }
  emit opened(generation, std::move(*files));
}

void ResponseReader::compare(Generation generation, ResponseFilesPointer files,
                             AnswerChoice choice) {
  if (generation != m_newest_pair) return;
  emit compared(generation, view_pair(files, choice));
}

void ResponseSurveyor::survey(Generation generation, ResponseFilesPointer files) {
  const auto stale = [&] { return generation != m_newest.load(); };
  if (stale()) return;
  auto survey = std::make_shared<PairSurvey>();
  survey->files = files;
  survey->total = files->answered;
  std::vector<AnswerChoice> choices = partners(*files);
  survey->partners_only = !choices.empty();
  if (survey->partners_only) survey->unpaired = unpaired(*files, choices);
  if (choices.size() > kMostPartners) choices.resize(kMostPartners);
  if (choices.empty()) {
    survey->shown = std::min(survey->total, kMostInMatrix);
    for (std::size_t i = 0; i < survey->shown; ++i) {
      for (std::size_t j = i + 1; j < survey->shown; ++j) choices.push_back({i, j});
    }
  }
  for (const AnswerChoice choice : choices) {
    if (stale()) return;
    survey->outcomes.push_back(outcome_of(*files, choice));
  }
  emit surveyed(generation, std::move(survey));
  if (!is_population(*files) || stale()) return;
  auto population = std::make_shared<PopulationView>();
  population->files = files;
  population->sides = sample_sides(files->files[0], files->files[1]);
  population->permutations = usual_permutations(population->sides.a.size());
  population->comparison = compare_populations(population->sides.a, population->sides.b,
                                               population->permutations, kSeed);
  emit populated(generation, std::move(population));
}

ResponseLoader::ResponseLoader(QObject* parent)
    : QObject(parent), m_reader(m_newest, m_newest_pair), m_surveyor(m_newest) {
  qRegisterMetaType<Generation>("driftscope::ui::Generation");
  qRegisterMetaType<AnswerChoice>("driftscope::ui::AnswerChoice");
  qRegisterMetaType<ResponseFilesPointer>("driftscope::ui::ResponseFilesPointer");
  qRegisterMetaType<ResponsePairPointer>("driftscope::ui::ResponsePairPointer");
  qRegisterMetaType<PairSurveyPointer>("driftscope::ui::PairSurveyPointer");
  qRegisterMetaType<PopulationPointer>("driftscope::ui::PopulationPointer");
  m_reader.moveToThread(&m_reading);
  m_surveyor.moveToThread(&m_surveying);
  connect_workers();
  m_reading.start();
  m_surveying.start();
}

void ResponseLoader::connect_workers() {
  connect(this, &ResponseLoader::read_requested, &m_reader, &ResponseReader::read);
  connect(this, &ResponseLoader::compare_requested, &m_reader, &ResponseReader::compare);
  connect(this, &ResponseLoader::survey_requested, &m_surveyor, &ResponseSurveyor::survey);
  connect(&m_reader, &ResponseReader::opened, this, &ResponseLoader::take_opened);
  connect(&m_reader, &ResponseReader::failed, this, &ResponseLoader::take_failed);
  connect(&m_reader, &ResponseReader::compared, this,
          [this](Generation generation, const ResponsePairPointer& pair) {
            if (generation == m_newest_pair) emit compared(pair);
          });
  connect(&m_surveyor, &ResponseSurveyor::surveyed, this,
          [this](Generation generation, const PairSurveyPointer& survey) {
            if (generation != m_newest) return;
            m_settled = !is_population(*survey->files);
            emit surveyed(survey);
          });
  connect(&m_surveyor, &ResponseSurveyor::populated, this,
          [this](Generation generation, const PopulationPointer& population) {
            if (generation != m_newest) return;
            m_settled = true;
            emit populated(population);
          });
}

ResponseLoader::~ResponseLoader() {
  ++m_newest;
  ++m_newest_pair;
  for (QThread* thread : {&m_reading, &m_surveying}) thread->quit();
  for (QThread* thread : {&m_reading, &m_surveying}) thread->wait();
}

void ResponseLoader::take_opened(Generation generation, const ResponseFilesPointer& files) {
  if (generation != m_newest) return;
  ++m_newest_pair;  // a pair of the files before means nothing any more
  m_open = files;
  m_settled = files->answers.size() < 2;
  emit opened(files);
  if (!m_settled) emit survey_requested(generation, files);
}

void ResponseLoader::take_failed(Generation generation, const QString& message) {
  if (generation != m_newest) return;
  emit failed(message);
  // What was open stays open, and the request that failed has stopped its survey.
  if (m_open && !m_settled) emit survey_requested(generation, m_open);
}

Generation ResponseLoader::load(const QStringList& paths) {
  const Generation generation = ++m_newest;
  emit read_requested(generation, paths);
  return generation;
}

Generation ResponseLoader::compare(const ResponseFilesPointer& files, AnswerChoice choice) {
  const Generation generation = ++m_newest_pair;
  emit compare_requested(generation, files, choice);
  return generation;
}

}  // namespace driftscope::ui
