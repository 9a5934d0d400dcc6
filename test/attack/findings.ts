/** What an attack found wrong: each kind of fault with how often it was seen and the first examples. */
const EXAMPLES = 3;

export class Findings {
  readonly #faults = new Map<string, { count: number; readonly examples: string[] }>();

  add(fault: string, example = ''): void {
    const known = this.#faults.get(fault) ?? { count: 0, examples: [] };
    known.count += 1;
    if (known.examples.length < EXAMPLES && example !== '') known.examples.push(example);
    this.#faults.set(fault, known);
  }

  /** How often any fault was seen. */
  get count(): number {
    return [...this.#faults.values()].reduce((sum, { count }) => sum + count, 0);
  }

  /** For people: a line for each kind of fault, and its examples below. */
  lines(): string[] {
    return [...this.#faults].flatMap(([fault, { count, examples }]) => [
      `  ✗ ${count} × ${fault}`,
      ...examples.map((example) => `      ${example}`),
    ]);
  }
}
