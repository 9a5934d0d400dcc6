/** Lua that stands before BullMQ's scripts: what they read of a job. */

/**
 * Data of up to this many bytes comes with its job: some fifty events. Through a script it is copied four times, in a command of its own
 * once; below, a command of its own costs more.
 */
export const INLINE_BYTES = 16 * 1024;

/**
 * Stands before each of BullMQ's scripts, and takes the place of `redis.call` in it. HGETALL is how they read a job that is
 * taken: here it reads the fields that the worker needs. What else it has to say stands in `progress`, which no producer's
 * value reaches: see {@link readNote}.
 */
export const JOB_READER = `
local redis = (function(redis)
  local unreadable = {}

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
    if isInline and values[5] then add('data', values[5]) end
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
  return setmetatable({ call = call }, { __index = redis })
end)(redis)
`;
