/** What notifications show; absent for none. */
export type NotifyLevel = 'name' | 'text';

const place = 'posthouse.notify';

export function notifyLevel(): NotifyLevel | undefined {
  const found = localStorage.getItem(place);
  return found === 'name' || found === 'text' ? found : undefined;
}

export function setNotifyLevel(level: NotifyLevel | undefined): void {
  if (level === undefined) localStorage.removeItem(place);
  else localStorage.setItem(place, level);
}
