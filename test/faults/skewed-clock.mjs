/** Preloaded into a service: its clock is off by METERLINE_TEST_CLOCK_OFFSET_MS, as on a machine whose time was never set. */
const OFFSET_MS = Number(process.env.METERLINE_TEST_CLOCK_OFFSET_MS);
const TrueDate = globalThis.Date;

globalThis.Date = class SkewedDate extends TrueDate {
  constructor(...parts) {
    if (parts.length === 0) super(TrueDate.now() + OFFSET_MS);
    else super(...parts);
  }

  static now() {
    return TrueDate.now() + OFFSET_MS;
  }
};
