-- SPDX-License-Identifier: BSD-2-Clause
-- Work of many kinds for callcheck-programs. Ends when it is killed.
local function fibonacci(n) if n < 2 then return n end return fibonacci(n - 1) + fibonacci(n - 2) end

while true do
  local list = {}
  for i = 1, 300 do list[i] = { name = "n" .. i, key = (i * 7919) % 300 } end
  table.sort(list, function(a, b) return a.key < b.key end)
  local parts = {}
  for i, e in ipairs(list) do parts[i] = string.format("%s=%d", e.name, e.key) end
  local text = table.concat(parts, ","):gsub("n(%d+)", function(d) return d .. d end)
  local co = coroutine.wrap(function() for i = 1, 10 do coroutine.yield(i) end end)
  for _ = 1, 10 do co() end
  local x = 0
  for i = 1, 100000 do x = x + i % 7 end
  fibonacci(15)
  local out = io.open("/dev/null", "w")
  out:write(text)
  out:close()
end
