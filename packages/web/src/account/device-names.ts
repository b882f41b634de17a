/** Names of the account's devices. The protocol has none: these are this browser's. */
const place = 'posthouse.device-names';

type Names = Readonly<Record<string, string>>;

export function deviceNames(): Names {
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
  localStorage.setItem(place, JSON.stringify(names));
  return names;
}
