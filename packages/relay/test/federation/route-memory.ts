/** The oracle of the model test: what 07 §B11 says that a relay remembers of one account's routes. */
import { type FinalRoute, routeContent } from '@posthouse/protocol';
import { canonicalJson } from '@posthouse/protocol/json';
import { network } from '../support/modules.ts';

export class RouteMemory {
  highest = -1;
  conflict = false;
  route: FinalRoute | undefined;
  /** Whether GET_VALUE must have the route: it was published here, or stored by PUT_VALUE. */
  isServed = false;
  /** Of the highest revision. */
  content: string | undefined;

  /**
   * Takes note of a final route that passed every check of 07 §B10.
   *
   * @returns whether it is the current one afterwards, so that PUT_VALUE is echoed
   */
  accept(route: FinalRoute): boolean {
    const content = contentOf(route);
    if (route.revision < this.highest) return false;
    if (route.revision > this.highest) {
      this.highest = route.revision;
      this.conflict = false;
      this.route = route;
      this.isServed = false;
      this.content = content;
    } else if (content !== this.content) this.conflict = true;
    return !this.conflict;
  }

  /** Returns the route that may be used at this time, in Unix seconds. */
  usable(now: number): FinalRoute | undefined {
    const { route } = this;
    return route === undefined || this.conflict || now >= route.expires_at ? undefined : route;
  }

  /** The text that GET_VALUE returns. */
  text(now: number): string | undefined {
    const route = this.usable(now);
    return route && canonicalJson(route);
  }

  copy(): RouteMemory {
    return Object.assign(new RouteMemory(), this);
  }
}

/** What two documents of one revision must share to be the same route. */
const contentOf = (route: FinalRoute) => Buffer.from(routeContent(network, route)).toString('hex');
