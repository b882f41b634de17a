/** Attacks with requests that are none of a method. */
import { Agent, request } from 'node:https';
import { type Attack, repeat } from './attack.ts';

const connections = 50;

/** What is asked for. */
interface Asked {
  readonly verb: string;
  /** Path on the host, for the base path of the methods. */
  readonly path: (base: string) => string;
  readonly headers?: Readonly<Record<string, string>>;
}

function asking(title: string, { verb: method, path, headers }: Asked): Attack {
  return {
    title: `${connections} connections of a stranger ask for ${title} as fast as they are answered`,
    async run({ https, ca }, signal) {
      const agent = new Agent({ keepAlive: true, maxSockets: connections, ca });
      const { hostname, port, pathname } = new URL(https);
      const options = { hostname, port, agent, signal, method, path: path(pathname), headers };
      const ask = () =>
        new Promise<void>((resolve) => {
          const asked = request(options, (answer) => answer.resume().on('close', resolve));
          asked.on('error', () => resolve()).end();
        });
      await repeat(connections, ask, signal);
      agent.destroy();
    },
  };
}

export const unknownPaths = asking('a path that no method has', {
  verb: 'GET',
  path: (base) => `${base}/no/such/method`,
});

export const preflights = asking('what a page of another origin may do', {
  verb: 'OPTIONS',
  path: (base) => `${base}/relay/info`,
  headers: { origin: 'https://page.example', 'access-control-request-method': 'POST' },
});

export const apiDocuments = asking('the description of all methods', {
  verb: 'GET',
  path: () => '/openapi.json',
});
