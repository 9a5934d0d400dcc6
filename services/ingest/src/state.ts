/** A state that moves only along the transitions that are listed for it. A move that is not listed is a defect. */
export class StateMachine<State extends string> {
  readonly #owner: string;
  readonly #transitions: Readonly<Record<State, readonly State[]>>;
  #current: State;

  constructor(owner: string, initial: State, transitions: Readonly<Record<State, readonly State[]>>) {
    this.#owner = owner;
    this.#current = initial;
    this.#transitions = transitions;
  }

  get current(): State {
    return this.#current;
  }

  /** @throws Error when the transition is not listed; the state stays as it is */
  enter(next: State): void {
    if (!this.#transitions[this.#current].includes(next)) {
      throw new Error(`the ${this.#owner} cannot go from ${this.#current} to ${next}`);
    }
    this.#current = next;
  }
}
