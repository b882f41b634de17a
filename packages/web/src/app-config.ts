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
  /** Bytes of a sealed attachment that the relay stores at most, 0 if it stores none. */
  readonly attachmentBytes?: number;
}

/** Where the configuration is kept. */
const configKey = 'posthouse.config';

/**
 * Returns the configuration as it was read last: a page that was opened before starts without a
 * request, online or not.
 */
export async function readConfig(): Promise<AppConfig> {
  return keptConfig() ?? (await fetchConfig()).config;
}

/**
 * Reads the configuration from the page's host, and keeps it for the next start.
 * @returns whether it is another one than that which was kept
 */
export async function fetchConfig(): Promise<{
  readonly config: AppConfig;
  readonly isChanged: boolean;
}> {
  const answer = await fetch('config.json', { cache: 'no-cache' });
  if (!answer.ok) throw new Error(`config.json: status ${answer.status}`);
  const config: unknown = await answer.json();
  // A proxy's page, for example: it must not take the place of what works.
  if (!isConfig(config)) throw new Error('config.json: not a configuration of the messenger');
  const text = JSON.stringify(config);
  const isChanged = localStorage.getItem(configKey) !== text;
  localStorage.setItem(configKey, text);
  return { config, isChanged };
}

function keptConfig(): AppConfig | undefined {
  try {
    const config: unknown = JSON.parse(localStorage.getItem(configKey) ?? 'null');
    return isConfig(config) ? config : undefined;
  } catch {
    return undefined;
  }
}

function isConfig(value: unknown): value is AppConfig {
  const { name, relayId, context, registry, needsInvite } = (value ?? {}) as Partial<AppConfig>;
  return (
    [name, relayId, context].every((text) => typeof text === 'string' && text !== '') &&
    typeof registry === 'object' &&
    typeof needsInvite === 'boolean'
  );
}
