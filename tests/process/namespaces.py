"""Network namespaces: two of them, joined by a cable (veth), and what can happen to a cable.

Owns:   namespaces named troupe-PID-a and troupe-PID-b, with one end of the cable each. Gone at the end;
        what a killed run left is removed by the next one (the process of its name does not live any more).
Fails:  `permitted` says in words what is missing.
"""

import json
import os
import re
import shutil
import subprocess

from harness import until

NAME = re.compile(r"^troupe-(\d+)-[ab]$")


def sh(*command, check=True, text=None):
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if check and done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip() or done.returncode}")
    return done


def remove_stale():
    for line in sh("ip", "netns", "list", check=False).stdout.splitlines():
        name = line.split()[0] if line.split() else ""
        known = NAME.match(name)
        if known and not os.path.exists(f"/proc/{known.group(1)}"):
            sh("ip", "netns", "del", name, check=False)


def permitted():
    """Empty, or why not."""
    for tool, package in (("ip", "iproute2"), ("nft", "nftables")):
        if shutil.which(tool) is None:
            return f"'{tool}' is not installed (package {package}; scripts/setup installs it)"
    remove_stale()
    name = f"troupe-{os.getpid()}-a"
    made = sh("ip", "netns", "add", name, check=False)
    if made.returncode != 0:
        return f"network namespaces are not permitted here: {made.stderr.strip()}"
    ruled = sh("ip", "netns", "exec", name, "nft", "list", "ruleset", check=False)
    sh("ip", "netns", "del", name, check=False)
    return "" if ruled.returncode == 0 else f"nft is not permitted here: {ruled.stderr.strip()}"


class Cable:
    """Two namespaces and what lies between them."""

    def __enter__(self):
        pid = os.getpid()
        self.sides = {}
        for side, address in (("a", "10.83.0.1/30"), ("b", "10.83.0.2/30")):
            name, device = f"troupe-{pid}-{side}", f"tr{pid % 10**7}{side}"
            self.sides[side] = (name, device, address)
            sh("ip", "netns", "add", name)
        (a, at_a, _), (b, at_b, _) = self.sides["a"], self.sides["b"]
        sh("ip", "link", "add", at_a, "netns", a, "type", "veth", "peer", "name", at_b, "netns", b)
        for name, device, address in self.sides.values():
            sh("ip", "-n", name, "address", "add", address, "dev", device)
            sh("ip", "-n", name, "link", "set", "lo", "up")
            sh("ip", "-n", name, "link", "set", device, "up")
        for name, device, _ in self.sides.values():  # an end has a carrier soon after both are up
            until(lambda name=name, device=device: "state UP" in sh(
                "ip", "-n", name, "-o", "link", "show", "dev", device).stdout, f"{device} is up")
        return self

    def __exit__(self, *_):
        for name, _, _ in self.sides.values():
            sh("ip", "netns", "del", name, check=False)

    def device(self, side):
        return self.sides[side][1]

    def carried(self):
        """Bytes that have gone through the cable, both ways, with all headers."""
        ends = [json.loads(sh("ip", "-n", name, "-s", "-j", "link", "show", "dev", device).stdout)[0]
                for name, device, _ in self.sides.values()]
        return sum(end["stats64"]["tx"]["bytes"] for end in ends)

    def places(self):
        """Each side as the benchmarks' programs take it: NAMESPACE,DEVICE,ADDRESS."""
        return [f"{name},{device},{address.split('/')[0]}" for name, device, address in self.sides.values()]

    def inside(self, side):
        """What to put before a command that shall run there."""
        return ("ip", "netns", "exec", self.sides[side][0])

    def plug(self, up):
        name, device, _ = self.sides["a"]
        sh("ip", "-n", name, "link", "set", device, "up" if up else "down")

    def slow_down(self, rate):
        """From now on it carries `rate` each way, as tc takes it (2gbit)."""
        for name, device, _ in self.sides.values():
            sh("ip", "netns", "exec", name, "tc", "qdisc", "add", "dev", device, "root", "tbf", "rate", rate,
               "burst", "64kb", "latency", "100ms")

    def cut_for(self, ms):
        """Nothing reaches either side for that long, on however busy a machine: the kernel ends it. No device
        goes down: that would make both forget each other's addresses, and ask again only after a second."""
        for name, device, _ in self.sides.values():
            rules = ('table inet troupe_cut\ndelete table inet troupe_cut\n'
                     f'table inet troupe_cut {{ set cut {{ type ifname; timeout {ms:.0f}ms; '
                     f'elements = {{ "{device}" }}; }}\nchain incoming {{ type filter hook input priority 0; '
                     'iifname @cut counter drop; }\n}\n')
            sh("ip", "netns", "exec", name, "nft", "-f", "-", text=rules)

    def cut_packets(self):
        """How many packets the last `cut_for` has kept from either side."""
        def counted(name):
            listed = sh("ip", "netns", "exec", name,
                        "nft", "-j", "list", "table", "inet", "troupe_cut").stdout
            parts = [part for item in json.loads(listed)["nftables"] if "rule" in item
                     for part in item["rule"]["expr"]]
            return sum(part["counter"]["packets"] for part in parts if "counter" in part)
        return sum(counted(name) for name, _, _ in self.sides.values())

    def drop_towards(self, side, device=None):
        """Nothing reaches that side any more (through that device of it); what it sends still passes."""
        rules = ("table inet troupe { chain incoming { type filter hook input priority 0; "
                 f'iifname "{device or self.device(side)}" drop; }}\n}}\n')
        sh(*self.inside(side), "nft", "-f", "-", text=rules)

    def pass_again(self, side):
        sh(*self.inside(side), "nft", "delete", "table", "inet", "troupe")

    def reset_connections(self):
        """Ends every connection at once, as a firewall that forgot them; False: the kernel cannot."""
        done = [sh(*self.inside(side), "ss", "-K", "-t", "state", "established", check=False)
                for side in ("a", "b")]
        return all(one.returncode == 0 and "not supported" not in one.stderr for one in done)
