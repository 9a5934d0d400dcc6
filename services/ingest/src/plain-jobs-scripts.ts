/**
 * Two scripts of our own on BullMQ's keys, for jobs with nothing unusual about them: they do in Redis what BullMQ's `moveToActive` and
 * `moveToFinished` do with such jobs, but what those do for each job, as far as it can be, once for many. Whatever is unusual
 * they leave as it is, to BullMQ's scripts. docs/decisions/0042 has the argument, and what each command stands for.
 */
import { INLINE_BYTES } from './job-reader.js';

/** Larger jobs are BullMQ's. */
const LARGEST_BYTES = 256 * 1024;
/** In bytes, of a field other than the data. */
const LONGEST_FIELD = 4096;
/** So many jobs in a row are left to BullMQ at once. */
const MOST_LEFT = 16;
/** So many completed jobs are removed by a script. */
const MOST_REMOVED = 200;

/**
 * Takes the next jobs of the queue, as long as they are plain.
 *
 * KEYS: wait, active, events, delayed, meta, marker. ARGV: prefix of keys, now, token, how long its locks last, the most jobs.
 * @returns how many of the next jobs are for BullMQ, when the first of them is; then id, time of addition, length of data, and the data if
 *   it is short, of each job
 */
export const TAKE = `
local wait, active, events, delayed, meta, marker = unpack(KEYS)
local prefix, now, token, duration, most = unpack(ARGV)
local call = redis.call
local answer = { 0 }

local function add(id, timestamp, bytes, data)
  local n = #answer
  answer[n + 1], answer[n + 2], answer[n + 3], answer[n + 4] = id, timestamp, bytes, data or ''
end

-- This very command may have been here before: the connection was lost before its answer came, and it was sent again.
local recent = call('LRANGE', active, 0, most - 1)
if #recent > 0 then
  local locks = {}
  for n, id in ipairs(recent) do locks[n] = prefix .. id .. ':lock' end
  for n, lock in ipairs(call('MGET', unpack(locks))) do
    if lock == token then
      local key = prefix .. recent[n]
      local bytes = call('HSTRLEN', key, 'data')
      call('PEXPIRE', locks[n], duration)
      add(recent[n], call('HGET', key, 'timestamp') or '0', bytes, bytes <= ${INLINE_BYTES} and call('HGET', key, 'data'))
    end
  end
  if #answer > 1 then return answer end
end

-- A queue that is paused or limited, and delayed jobs that are due, are BullMQ's.
for _, setting in ipairs(call('HMGET', meta, 'paused', 'concurrency', 'max', 'duration')) do
  if setting then return answer end
end
if #call('ZRANGEBYSCORE', delayed, 0, (now + 1) * 0x1000 - 1, 'LIMIT', 0, 1) > 0 then return answer end

local others = { 'name', 'opts', 'timestamp', 'delay', 'priority' }
-- The options of most jobs are the same.
local readable = {}
local function isReadable(options)
  if readable[options] == nil then
    local ok, value = pcall(cjson.decode, options)
    readable[options] = ok and type(value) == 'table'
  end
  return readable[options]
end

-- Plain: it has the fields that every job has from the first on, and no other, so that nothing ever happened to it; and none is long.
local function addPlain(id)
  local key = prefix .. id
  local bytes = redis.pcall('HSTRLEN', key, 'data')
  if type(bytes) ~= 'number' or bytes == 0 or bytes > ${LARGEST_BYTES} or call('HLEN', key) ~= 6 then return false end
  for _, field in ipairs(others) do
    local length = call('HSTRLEN', key, field)
    if length == 0 or length > ${LONGEST_FIELD} then return false end
  end
  local isInline = bytes <= ${INLINE_BYTES}
  local fields = call('HMGET', key, 'timestamp', 'opts', isInline and 'data' or 'priority')
  if not isReadable(fields[2]) then return false end
  add(id, fields[1], bytes, isInline and fields[3])
  return true
end

-- The next one is the last of the list.
local ids = call('LRANGE', wait, -most, -1)
local taken = {}
for n = #ids, 1, -1 do
  local id = ids[n]
  -- What earlier releases of BullMQ put among the jobs begins so.
  if string.sub(id, 1, 2) ~= '0:' and addPlain(id) then
    if answer[1] > 0 then return { answer[1] } end
    taken[#taken + 1] = id
  elseif #taken > 0 or answer[1] == ${MOST_LEFT} then
    break
  else
    answer[1] = answer[1] + 1
  end
end
if #taken == 0 then return answer end

for _, id in ipairs(taken) do
  local key = prefix .. id
  call('SET', key .. ':lock', token, 'PX', duration)
  call('HSET', key, 'processedOn', now, 'ats', 1)
  call('XADD', events, '*', 'event', 'active', 'jobId', id, 'prev', 'waiting')
end
call('LTRIM', wait, 0, -#taken - 1)
call('LPUSH', active, unpack(taken))
call('ZADD', marker, 0, '0')
return answer`;

/**
 * Acknowledges jobs that {@link TAKE} took.
 *
 * KEYS: active, stalled, events, meta, completed, wait, prioritized. ARGV: prefix of keys, now, how many completed jobs stay readable, how
 * many of these may be among them: the last ones; then id and token of each.
 * @returns the ids of those that it left alone: their locks are lost, or somebody has changed them
 */
export const ACKNOWLEDGE = `
local active, stalled, events, meta, completed, wait, prioritized = unpack(KEYS)
local prefix, now, most, kept = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local call = redis.call
local ids, tokens, jobs, locks, others, left = {}, {}, {}, {}, {}, {}

-- What BullMQ may keep of a job beside its fields, for which there was a reason: children, or lines of a log.
local function addOthers(keys, job)
  local n = #keys
  keys[n + 1], keys[n + 2], keys[n + 3] = job .. ':dependencies', job .. ':unsuccessful', job .. ':processed'
  keys[n + 4], keys[n + 5] = job .. ':failed', job .. ':logs'
end

for at = 5, #ARGV, 2 do
  local n = #ids + 1
  ids[n], tokens[n] = ARGV[at], ARGV[at + 1]
  jobs[n] = prefix .. ids[n]
  locks[n] = jobs[n] .. ':lock'
  addOthers(others, jobs[n])
end

local noneHasOthers = call('EXISTS', unpack(others)) == 0
-- With the six fields of a plain job and the two of TAKE. Another one may be the parent that it got meanwhile.
local function isAsTaken(n)
  return call('HLEN', jobs[n]) == 8 and (noneHasOthers or call('EXISTS', unpack(others, 5 * n - 4, 5 * n)) == 0)
end

local done, removed = {}, {}
for n, lock in ipairs(call('MGET', unpack(locks))) do
  if lock == tokens[n] and isAsTaken(n) and call('LREM', active, -1, ids[n]) == 1 then
    done[#done + 1] = ids[n]
    removed[#removed + 1] = locks[n]
  else
    left[#left + 1] = ids[n]
  end
end
if #done == 0 then return left end
call('SREM', stalled, unpack(done))

local longest = call('HGET', meta, 'opts.maxLenEvents')
if not longest then
  longest = 10000
  call('HSET', meta, 'opts.maxLenEvents', longest)
end
call('XTRIM', events, 'MAXLEN', '~', longest)

for n, id in ipairs(done) do
  local job = prefix .. id
  if n > #done - kept then
    call('HSET', job, 'atm', 1, 'returnvalue', 'null', 'finishedOn', now)
    call('ZADD', completed, now, id)
  else
    removed[#removed + 1] = job
  end
  call('XADD', events, '*', 'event', 'completed', 'jobId', id, 'returnvalue', 'null', 'prev', 'active')
end

-- Those of a parent are left to BullMQ, which looks after the parent, when it completes the next job.
for _, id in ipairs(call('ZREVRANGE', completed, most, most + ${MOST_REMOVED - 1})) do
  local job = prefix .. id
  if call('HEXISTS', job, 'parentKey') == 0 then
    removed[#removed + 1] = job
    addOthers(removed, job)
    call('ZREM', completed, id)
  end
end
call('DEL', unpack(removed))

if call('LLEN', wait) + call('LLEN', active) + call('ZCARD', prioritized) == 0 then
  call('XADD', events, '*', 'event', 'drained')
end
return left`;
