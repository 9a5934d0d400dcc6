/**
 * Preloaded into a service: its clock is off by METERLINE_TEST_CLOCK_OFFSET_MS, as on a machine whose time was never set, or runs
 * METERLINE_TEST_CLOCK_RATE times as fast, and is right at METERLINE_TEST_CLOCK_RIGHT_AT.
 */
const { METERLINE_TEST_CLOCK_OFFSET_MS: offset, METERLINE_TEST_CLOCK_RATE: rate } = process.env;
const RIGHT_AT = Number(process.env.METERLINE_TEST_CLOCK_RIGHT_AT ?? 0);
const TrueDate = globalThis.Date;

function now() {
  return Math.floor(RIGHT_AT + (TrueDate.now() - RIGHT_AT) * Number(rate ?? 1)) + Number(offset ?? 0);
}

globalThis.Date = class SkewedDate extends TrueDate {
  constructor(...parts) {
    if (parts.length === 0) super(now());
    else super(...parts);
  }

  static now() {
    return now();
  }
};
