/** Names of the account's devices. The protocol has none: these are this browser's. */
import { keepText } from '../state/drafts.ts';

const place = 'posthouse.device-names';

type Names = Readonly<Record<string, string>>;

/** On a locked device, which stores none: those that were given since it was opened. */
let given: Names | undefined;

export function deviceNames(): Names {
  if (given !== undefined) return given;
  try {
    const found: unknown = JSON.parse(localStorage.getItem(place) ?? '{}');
    return typeof found === 'object' && found !== null ? (found as Names) : {};
  } catch {
    return {};
  }
}

/** Keeps a name; an empty one is forgotten. */
export function nameDevice(deviceId: string, name: string): Names {
  const { [deviceId]: _before, ...others } = deviceNames();
  const names = name === '' ? others : { ...others, [deviceId]: name };
  given = keepText(place, JSON.stringify(names)) ? undefined : names;
  return names;
}
