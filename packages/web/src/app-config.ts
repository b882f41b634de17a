/** What the page knows of the relay that served it, or that its host names: `config.json`. */

export interface AppConfig {
  /** Name of the relay, for people. */
  readonly name: string;
  /** ID of the relay at which new accounts have their home. */
  readonly relayId: string;
  /** The network's context, `neo:<magic>:<registry>` (01 §1). */
  readonly context: string;
  /** The service word, if it is not the protocol's. */
  readonly word?: string;
  /** Content of a registry's file, or nodes of the chain that has the registry. */
  readonly registry: object;
  /** Whether a new account needs an invite of the relay. */
  readonly needsInvite: boolean;
}

const key = 'posthouse.config';

/**
 * Returns the configuration as it was read last: a page that was opened before starts without a
 * request, online or not.
 */
export async function readConfig(): Promise<AppConfig> {
  const kept = localStorage.getItem(key);
  return kept === null ? await fetchConfig() : (JSON.parse(kept) as AppConfig);
}

/** Reads the configuration from the page's host, and keeps it for the next start. */
export async function fetchConfig(): Promise<AppConfig> {
  const answer = await fetch('config.json', { cache: 'no-cache' });
  if (!answer.ok) throw new Error(`config.json: status ${answer.status}`);
  const config = (await answer.json()) as AppConfig;
  localStorage.setItem(key, JSON.stringify(config));
  return config;
}
