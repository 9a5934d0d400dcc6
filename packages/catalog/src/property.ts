/** Returns a property of a value of unknown type. Returns undefined if the value is not an object or lacks the property. */
export function property(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
}
