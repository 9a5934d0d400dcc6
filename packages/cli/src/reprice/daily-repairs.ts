import { MS_PER_DAY, MS_PER_HOUR } from '@meterline/catalog';
import { repairCells, type Stored, type Warehouse } from '@meterline/warehouse';

/** Recomputes sealed cells a day at a time: each hour once and the day once, however many steps a day takes. */
export class DailyRepairs {
  readonly #warehouse: Warehouse;
  /** One event for each hour, all of one day. */
  #hours = new Map<number, Stored>();

  constructor(warehouse: Warehouse) {
    this.#warehouse = warehouse;
  }

  /** @param events that are durable, in the order of their hours. Resolves when the cells of earlier days are durable. */
  async add(events: readonly Stored[]): Promise<void> {
    for (const event of events) {
      const [earlier] = this.#hours.values();
      if (earlier && dayOf(earlier) !== dayOf(event)) await this.finish();
      this.#hours.set(Math.floor(event.timestamp / MS_PER_HOUR), event);
    }
  }

  /** Resolves when the cells of every event are durable. */
  async finish(): Promise<void> {
    await repairCells(this.#warehouse, [...this.#hours.values()]);
    this.#hours.clear();
  }
}

function dayOf({ timestamp }: Stored): number {
  return Math.floor(timestamp / MS_PER_DAY);
}
