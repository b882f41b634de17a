import { isJsonObject, type JsonObject, type JsonValue } from '@posthouse/protocol/json';

interface ChangedLeaf {
  /** Names and indexes from the root to the value that was changed. */
  readonly path: string;
  readonly value: JsonObject;
}

/**
 * Returns a copy of an object for each string and number in it, with that value changed a little
 * and everything else as it was.
 */
export function changedLeaves(object: JsonObject): ChangedLeaf[] {
  return changed(object).map(({ path, value }) => ({ path, value: value as JsonObject }));
}

function changed(value: JsonValue): { readonly path: string; readonly value: JsonValue }[] {
  if (typeof value === 'number') return [{ path: '', value: value + 1 }];
  if (typeof value === 'string') return [{ path: '', value: flip(value) }];
  if (Array.isArray(value)) {
    return value.flatMap((item, index) =>
      changed(item as JsonValue).map((other) => ({
        path: `${index}.${other.path}`,
        value: value.with(index, other.value),
      })),
    );
  }
  if (!isJsonObject(value)) return [];
  return Object.entries(value).flatMap(([name, member]) =>
    changed(member as JsonValue).map((other) => ({
      path: `${name}.${other.path}`,
      value: { ...value, [name]: other.value },
    })),
  );
}

/** Changes one character in the middle of a text. */
function flip(text: string): string {
  const middle = Math.floor(text.length / 2);
  const other = text[middle] === 'A' ? 'B' : 'A';
  return `${text.slice(0, middle)}${other}${text.slice(middle + 1)}`;
}
