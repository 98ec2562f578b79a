# SPDX-License-Identifier: BSD-2-Clause
# Work of many kinds for callcheck-programs. Ends when it is killed.
require "json"
require "digest"

def fibonacci(n) = n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2)

def work
  list = (0...200).map { |i| { "name" => "n#{i}", "key" => Digest::MD5.hexdigest(i.to_s) } }
  list.sort_by! { |e| e["key"] }
  text = JSON.generate(list)
  JSON.parse(text)
  text.gsub(/n(\d+)/) { |m| m * 2 }
  Fiber.new { 10.times { |i| Fiber.yield i } }.tap { |f| 10.times { f.resume } }
  fibonacci(12)
  sleep 0.0003
end

2.times.map { Thread.new { loop { work } } }.each(&:join)
