/** A request, from what a form of the reference says. */

/** A parameter with the values that were given; none: it is not sent. */
export interface Given {
  readonly name: string;
  readonly place: 'path' | 'query' | 'header';
  /** Whether several values are written one by one, or with commas between them. */
  readonly isEach: boolean;
  readonly values: readonly string[];
}

export interface FormRequest {
  /** Path and query. */
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** @param path with `{name}` where a parameter of the path goes */
export function requestOf(path: string, parameters: readonly Given[]): FormRequest {
  const query = new URLSearchParams();
  const headers: Record<string, string> = {};
  let target = path;
  for (const { name, place, isEach, values } of parameters) {
    if (values.length === 0) continue;
    const text = values.join(',');
    if (place === 'path') target = target.replace(`{${name}}`, encodeURIComponent(text));
    else if (place === 'header') headers[name] = text;
    else for (const value of isEach ? values : [text]) query.append(name, value);
  }
  return { target: query.size === 0 ? target : `${target}?${query}`, headers };
}
