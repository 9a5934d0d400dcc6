/** Lua that stands before BullMQ's scripts: what they read of a job, and what they ask again for each of many jobs. */

/** Data of up to this many bytes comes with its job: some thousand events. */
export const INLINE_BYTES = 256 * 1024;

/**
 * Stands before each of BullMQ's scripts, and takes the place of `redis.call` in it. HGETALL is how they read a job that is
 * taken: here it reads the fields that the worker needs. What else it has to say stands in `progress`, which no producer's
 * value reaches: see {@link readNote}.
 */
export const JOB_READER = `
local redis = (function(redis)
  local unreadable = {}
  -- Of data, by this script.
  local bytesRead = 0

  local function note(key, field)
    unreadable[key] = unreadable[key] or {}
    table.insert(unreadable[key], field)
  end

  local function decoded(text)
    local ok, value = pcall(cjson.decode, text)
    if ok and type(value) == 'table' then return value end
    return nil
  end

  -- Of the options only the trace that the job belongs to. Those of most jobs are the same.
  local plainOptions = '{}'
  local function options(key, text)
    if not text or text == plainOptions then return '{}' end
    local opts = decoded(text)
    if not opts then
      note(key, 'opts')
      return '{}'
    end
    local trace = {}
    if type(opts.tm) == 'string' then trace.tm = opts.tm end
    if type(opts.omc) == 'boolean' then trace.omc = opts.omc end
    if next(trace) then return cjson.encode(trace) end
    plainOptions = text
    return '{}'
  end

  -- The script that acknowledges the job reads the parent again and would fail.
  local function dropUnreadableParent(key, parentKey, parent)
    local fault = nil
    if parentKey and not string.match(parentKey, '^.+:[^:]+$') then fault = 'parentKey' end
    if parent then
      local value = decoded(parent)
      local id = value and value.id
      local isKnown = type(id) == 'string' and type(value.queueKey) == 'string' and parentKey
      if not isKnown then fault = 'parent' end
    end
    if fault then
      note(key, fault)
      redis.call('HDEL', key, 'parent', 'parentKey')
    end
  end

  local names = { 'name', 'timestamp', 'ats', 'atm', 'processedOn' }

  local function job(key)
    local bytes = redis.call('HSTRLEN', key, 'data')
    local isInline = bytes <= ${INLINE_BYTES}
    local values = redis.call('HMGET', key, 'opts', 'parentKey', 'parent', 'rjk', isInline and 'data' or 'rjk', unpack(names))
    local fields = { 'opts', options(key, values[1]) }
    local function add(name, value)
      fields[#fields + 1] = name
      fields[#fields + 1] = value
    end
    for n, name in ipairs(names) do
      if values[5 + n] then add(name, values[5 + n]) end
    end
    if values[2] or values[3] then dropUnreadableParent(key, values[2], values[3]) end
    -- A schedule would send the same event for ever, which counts once.
    if values[4] then note(key, 'rjk') end
    if isInline and values[5] then
      add('data', values[5])
      bytesRead = bytesRead + bytes
    end
    local fault = unreadable[key]
    add('progress', fault and cjson.encode({ bytes = bytes, unreadable = fault }) or '{"bytes":' .. bytes .. '}')
    return fields
  end

  -- Counters of attempts, which a producer may have written over.
  local function increase(key, field, by)
    local answer = redis.pcall('HINCRBY', key, field, by)
    if type(answer) ~= 'table' or not answer.err then return answer end
    note(key, field)
    redis.call('HSET', key, field, by)
    return tonumber(by)
  end

  local answers = { HGETALL = job, HINCRBY = increase }
  local call = function(command, ...)
    local answer = answers[command]
    if answer then return answer(...) end
    return redis.call(command, ...)
  end
  local added = { call = call, answers = answers, plainCall = redis.call, bytesRead = function() return bytesRead end }
  return setmetatable(added, { __index = redis })
end)(redis)
`;

/**
 * Stands after {@link JOB_READER} where many calls of a script go together that is known. Nobody else writes while a script runs, so
 * what these scripts ask or do for each job alike is asked or done once: how the queue is set (paused, limits), whether a
 * delayed job is due, the mark that there is work, and the length of the stream of events.
 */
export const KNOWN_ANSWERS = `
do
  local answers, call = redis.answers, redis.plainCall
  local settings, lengths, marked, due, trimmed = {}, {}, {}, {}, {}

  answers.HMGET = function(key, first, ...)
    if first ~= 'paused' or select('#', ...) ~= 3 then return call('HMGET', key, first, ...) end
    settings[key] = settings[key] or call('HMGET', key, first, ...)
    return settings[key]
  end

  answers.HGET = function(key, field)
    if field ~= 'opts.maxLenEvents' then return call('HGET', key, field) end
    lengths[key] = lengths[key] or call('HGET', key, field)
    return lengths[key]
  end

  answers.ZRANGEBYSCORE = function(key, ...)
    due[key] = due[key] or call('ZRANGEBYSCORE', key, ...)
    local found = due[key]
    if #found > 0 then due[key] = nil end
    return found
  end

  answers.ZADD = function(key, score, member, ...)
    if score ~= 0 or member ~= '0' then return call('ZADD', key, score, member, ...) end
    local answer = marked[key] and 0 or call('ZADD', key, score, member, ...)
    marked[key] = true
    return answer
  end

  answers.XTRIM = function(key, ...)
    local answer = trimmed[key] and 0 or call('XTRIM', key, ...)
    trimmed[key] = true
    return answer
  end
end
`;
