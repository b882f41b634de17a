import { listenAddress } from '../config/addresses.ts';
import type { RelayConfig } from '../config/index.ts';
import { withName } from '../config/with-name.ts';
import type { RelayContext } from '../context.ts';
import { loadToken } from '../keys/admin-token.ts';
import { builtFolder, readWebFiles } from '../web/index.ts';
import { AdminInterface } from './http.ts';

/**
 * Makes the admin interface of a relay; `undefined` if it is not configured.
 *
 * @param pageFolder of the admin page
 * @throws Error if the token cannot be used, or the page is not the one that was built
 */
export async function openAdminInterface(
  config: RelayConfig,
  context: RelayContext,
  pageFolder = builtFolder('adminPage'),
): Promise<AdminInterface | undefined> {
  const { adminTokenFile, listen, tls } = config.operations;
  if (adminTokenFile === '' || listen === '') return undefined;
  const token = await withName('operations.adminTokenFile', () => loadToken(adminTokenFile));
  const { host } = listenAddress({ listen });
  const named = tls ? config.public.https.map((address) => new URL(address).hostname) : [];
  const hosts = ['localhost', '127.0.0.1', '[::1]', host.includes(':') ? `[${host}]` : host];
  const names = { scheme: tls ? 'https' : 'http', hosts: new Set([...hosts, ...named]) } as const;
  const page = pageFolder === undefined ? new Map() : readWebFiles(pageFolder);
  return new AdminInterface({ context, config, token, names, page });
}
